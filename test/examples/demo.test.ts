import t from 'tap'
import { ExampleProcess, settingsFor, startExample } from './example-process.js'
import { Visitor, userIdOn } from './visitor.js'

const settings = await settingsFor(t)
const url = `http://localhost:${settings.PORT}`
const example = await startExample(t, settings)
const SIGN_IN = '/auth/pages/sign-in'

t.test('with nothing configured the example starts and says which secrets it made up', async t => {
  t.match(example.output, `Ready: ${url}`)
  for (const setting of ['SVC_SESSION_SECRET', 'LOCAL_IDP_SECRET', 'SVC_AUTH_DATA_SECRET']) {
    t.equal(example.output.split(setting).length, 2, `${setting} is named once`)
  }
})

t.test('pages come with a strict policy, and their style sheets and script with the right type', async t => {
  const page = await new Visitor().open(url)
  t.equal(page.url.pathname + page.url.search, `${SIGN_IN}?next=%2F`, 'who is not signed in is sent to the sign-in page')
  t.match(page.text, '<link rel="stylesheet" href="/auth.css">')
  t.match(page.text, 'href="/mailbox"')

  const missing = await new Visitor().open(`${url}/nowhere`)
  t.match(missing, { status: 404, text: 'Nothing was found' })
  t.equal(
    missing.headers.get('content-security-policy'),
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
      "base-uri 'none'; frame-ancestors 'none'"
  )
  t.notMatch(missing.text, / style=| on[a-z]+=|<style|<script>/, 'nothing is inline')

  for (const file of ['auth.css', 'style.css']) t.match((await fetch(`${url}/${file}`)).headers.get('content-type'), 'text/css')
  t.match((await fetch(`${url}/token.js`)).headers.get('content-type'), 'text/javascript')
})

t.test('what a visitor writes before they have an account is theirs when they register, and when they sign in', async t => {
  const noor = { name: 'Noor', email: 'noor@example.com', password: 'a note for later' }
  const visitor = new Visitor()
  await visitor.open(`${url}/notes`)
  t.match(await visitor.press('Keep it', { text: 'buy <oil>' }), { status: 200, text: /You have written without signing in[^]*<li>buy &#60;oil&#62;<\/li>/ })
  t.equal((await visitor.open(url)).url.pathname, SIGN_IN, 'a guest is not signed in')
  await visitor.register(noor)
  t.match((await visitor.follow('Notes')).text, /<li>buy &#60;oil&#62;<\/li>/)
  t.notMatch(visitor.page.text, 'without signing in')

  await visitor.press('Sign out')
  t.notMatch((await visitor.open(`${url}/notes`)).text, '<li>')
  await visitor.press('Keep it', { text: 'sell it' })
  await visitor.follow('sign in')
  await visitor.press('Sign in', noor)
  t.match((await visitor.open(`${url}/notes`)).text, /<li>buy &#60;oil&#62;<\/li><li>sell it<\/li>/)
})

t.test('a visitor registers, signs out, mistypes the password and signs in again', async t => {
  const ada = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
  const visitor = new Visitor()
  await visitor.open(url)

  const claims = await visitor.register(ada)
  t.equal(claims.url.pathname, '/')
  t.match(claims.text, '<dt>name</dt><dd>Ada Lovelace</dd>')
  t.equal(claims.headers.get('cache-control'), 'no-store')

  t.equal((await visitor.press('Sign out')).url.pathname, SIGN_IN)
  const refused = await visitor.press('Sign in', { ...ada, password: 'an engine of analogy' })
  t.match(refused, { status: 401, text: 'The e-mail or the password is wrong.' })
  t.match((await visitor.register({ ...ada, password: 'another one than that' })).text, 'An account with this e-mail already exists.')
  await visitor.follow('Sign in instead')
  t.match((await visitor.press('Sign in', ada)).text, 'ada@example.com')
})

t.test('what users write is shown as text', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.register({ name: '<img src=x onerror="alert(1)">', email: 'mallory@example.com', password: 'a mischievous one' })
  t.match((await visitor.open(`${url}?done=<b>`)).text, '<dd>&#60;img src=x onerror=&#34;alert(1)&#34;&#62;</dd>')
  t.notMatch(visitor.page.text, /<b>|role="status">[^<]/)
})

t.test('the requests of the token button fetch a token and verify it', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  t.equal((await visitor.post('/auth/local/token', {})).status, 401)

  const claims = await visitor.register({ email: 'emmy@example.com', password: 'rings and invariants' })
  t.match(claims.text, '<script type="module" src="/token.js">')
  const { token } = await (await visitor.post('/auth/local/token', {})).json() as { token: string }
  const verified = await visitor.post('/auth/local/verify-token', { token })

  t.match(await verified.json(), { iss: 'svc-auth-local', email: 'emmy@example.com' })
})

t.test('the development provider signs in the user that its form names', async t => {
  const visitor = new Visitor()
  await visitor.open(url)

  const question = await visitor.follow('Continue with Dev Provider')
  t.match(question.text, 'Who do you want to be?')
  const grace = await visitor.press('Continue', { email: 'Grace@Example.com', name: 'Grace Hopper' })
  t.equal(grace.url.pathname, '/')
  for (const part of ['grace@example.com', 'Grace Hopper', '<dt>email_verified</dt><dd>true</dd>']) t.match(grace.text, part)

  await visitor.press('Sign out')
  await visitor.follow('Continue with Dev Provider')
  const joan = await visitor.press('Continue', { email: 'joan@example.com', name: 'Joan Clarke' })
  t.match(joan.text, 'joan@example.com', 'and somebody else the next time')

  await visitor.press('Sign out')
  await visitor.follow('Continue with Dev Provider')
  const again = await visitor.press('Continue', { email: 'grace@example.com', name: 'Grace Hopper' })
  t.equal(userIdOn(again.text), userIdOn(grace.text), 'the same e-mail is the same user')
})

t.test('a sign-in that is cancelled at the provider leads back to the sign-in page', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  const question = await visitor.follow('Continue with Dev Provider')

  const login = await visitor.press('Cancel')
  t.equal(login.url.pathname + login.url.search, `${SIGN_IN}?next=%2F&error=access_denied`)
  t.match(login.text, 'The sign-in was cancelled.')

  t.match(await visitor.open(question.url.href), { status: 400, text: 'The sign-in has ended' }, 'and the page of the provider is spent')
})

t.test('an account with a password is not taken over by way of the provider', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.register({ email: 'sophie@example.com', password: 'primes and plates' })
  await visitor.press('Sign out')
  await visitor.follow('Continue with Dev Provider')

  const login = await visitor.press('Continue', { email: 'sophie@example.com', name: 'Not Sophie' })
  t.match(login.text, 'Sign in the way you did before, or choose “Forgot your password?”.')
})

t.test('roles are given by administrators, from the pages of the application', async t => {
  const [admin, member] = [new Visitor(), new Visitor()]
  const pages = await Promise.all(([[admin, 'kurt'], [member, 'olga']] as const).map(async ([visitor, name]) => {
    await visitor.open(url)
    return visitor.register({ email: `${name}@example.com`, password: 'a complete sentence' })
  }))
  const [kurt = '', olga = ''] = pages.map(({ text }) => userIdOn(text))
  t.equal(await new ExampleProcess(t, ['../lib/command/main.ts', 'grant', 'kurt@example.com', '--claim', 'role=admin'], settings).end(), 0)
  const roleOf = async () => /<dt>role<\/dt><dd>(\w+)</.exec((await member.open(url)).text)?.[1]

  t.equal((await member.send(`${url}/admin/users/${olga}/role`, { role: 'admin' }, 'same-origin')).status, 403)
  await admin.send(`${url}/admin/users/${olga}/role`, { role: 'editor' }, 'same-origin')
  t.equal(await roleOf(), undefined, 'an administrator needs a second factor')
  await admin.becomeAdministrator(url)
  t.equal(admin.page.url.pathname, '/admin')
  t.equal((await admin.send(`${url}/admin/users/${olga}/role`, { role: 'editor' }, 'cross-site')).status, 403)
  t.equal((await admin.send(`${url}/admin/users/${olga}/role`, { role: 'king' }, 'same-origin')).status, 400)
  t.equal(await roleOf(), undefined)

  const users = await admin.open(`${url}/admin`)
  t.match(users.text, /kurt@example\.com(?:(?!@example)[^])*This is you/)
  t.match(users.text, 'olga@example.com')
  t.notMatch(users.text, `/admin/users/${kurt}/role`)
  t.equal((await admin.send(`${url}/admin/users/${olga}/role`, { role: 'editor' }, 'same-origin')).url.pathname, '/admin')
  t.equal(await roleOf(), 'editor')
  await admin.send(`${url}/admin/users/${olga}/role/withdraw`, {}, 'same-origin')
  t.equal(await roleOf(), undefined)
})

t.test('an administrator adds the identity provider of a customer, sees its record, and removes it', async t => {
  const admin = new Visitor()
  await admin.open(url)
  await admin.register({ name: 'Sam', email: 'sam@example.com', password: 'an engine of analysis' })
  t.equal(await new ExampleProcess(t, ['../lib/command/main.ts', 'grant', 'sam@example.com', '--claim', 'role=admin'], settings).end(), 0)
  await admin.becomeAdministrator(url)
  await admin.follow('Connections')
  const typed = { name: 'Acme', issuer: 'https://id.acme.example', clientId: 'demo', clientSecret: 'a secret of the client', domain: 'acme.example' }

  t.match((await admin.press('Add it', typed)).text, /acme\.example <small>claimed[^]*_svc-auth-challenge\.acme\.example TXT "svc-auth-/)
  t.notMatch(admin.page.text, typed.clientSecret)
  t.match((await admin.press('Remove')).text, 'There are none yet')
})

t.test('an administrator sees what a user sees, gives a reason, and comes back', async t => {
  const [admin, member] = [new Visitor(), new Visitor()]
  for (const [visitor, name] of [[admin, 'edith'], [member, 'ruth']] as const) {
    await visitor.open(url)
    await visitor.register({ name, email: `${name}@example.com`, password: 'a complete sentence' })
  }
  t.equal(await new ExampleProcess(t, ['../lib/command/main.ts', 'grant', 'edith@example.com', '--claim', 'role=admin'], settings).end(), 0)
  await admin.becomeAdministrator(url)
  t.notMatch((await admin.open(`${url}/admin?search=edith`)).text, 'See what', 'not of an administrator')

  await admin.open(`${url}/admin?search=ruth`)
  t.equal((await admin.press('See what this user sees', { reason: ' ' })).status, 400)
  await admin.open(`${url}/admin?search=ruth`)
  const seen = await admin.press('See what this user sees', { reason: 'ticket 4711' })
  t.equal(seen.url.pathname, '/')
  t.match(seen.text, 'Hello ruth')
  t.equal((await admin.open(`${url}/admin`)).status, 403, 'what the user may not see')

  const back = await admin.press('End')
  t.equal(back.url.pathname, '/admin')
  t.match(back.text, 'Administration')
  const history = await admin.open(`${url}/admin/users/${userIdOn(seen.text)}`)
  for (const event of ['impersonation', 'impersonation-end']) t.match(history.text, `<span>${event} </span>`)
})

t.test('a key that a user makes on the page of the account opens the route for scripts, until it is ended', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.register({ email: 'joan@example.org', password: 'a complete sentence' })
  const api = `${url}/api/profile`
  t.match((await visitor.open(api)).text, '"by":"session"')

  await visitor.open(url)
  await visitor.follow('Make an API key')
  const made = await visitor.press('Make a key', { name: 'Laptop', scopes: 'profile' })
  const [key = ''] = /demo_\w{50}/.exec(made.text) ?? []
  const ask = async () => fetch(api, { headers: { authorization: `Bearer ${key}` } })
  t.match(await (await ask()).json(), { by: 'key', email: 'joan@example.org' })
  t.notMatch((await visitor.open(`${url}/auth/pages/account?open=keys`)).text, key, 'it is shown once')

  await visitor.press('End key')
  t.equal((await ask()).status, 401)
})

t.test('a user without a password gets one by the link in the mailbox, which shows the newest mail first', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.follow('Continue with Dev Provider')
  await visitor.press('Continue', { email: 'wang@example.com', name: 'Wang Zhenyi' })
  await visitor.press('Sign out')

  await visitor.follow('Forgot your password\\?')
  const asked = await visitor.press('Send the link', { email: 'Wang@Example.com' })
  t.equal(asked.url.pathname, '/auth/pages/link-sent')
  await example.says('Mail to wang@example.com, to read at /mailbox: Choose a new password - Demo')
  const mailbox = await visitor.follow('Mailbox')
  t.equal(mailbox.headers.get('cache-control'), 'no-store')
  const [, link = ''] = /<h2>Choose a new password - Demo<\/h2>\s*<p>To wang@example\.com[^]*?<a href="([^"]*)"/.exec(mailbox.text) ?? []
  t.match(link, `${url}/auth/local/reset-password?token=`)
  t.notMatch(example.output, link, 'the log has no link')

  await visitor.open(link)
  t.match(await visitor.press('Set password', { password: 'short' }), { status: 400, text: 'role="alert"' })
  t.equal((await visitor.press('Set password', { password: 'eclipses explained' })).url.pathname, SIGN_IN)
  t.match((await visitor.press('Sign in', { email: 'wang@example.com', password: 'eclipses explained' })).text, 'Wang Zhenyi')
  const subjects = Array.from((await visitor.open(`${url}/mailbox`)).text.matchAll(/<h2>([^<]+)</g), ([, subject]) => subject)
  t.strictSame(subjects.slice(0, 2), ['Your password was changed - Demo', 'Choose a new password - Demo'])
})

t.test('password managers find the page for another password', async t => {
  const response = await new Visitor().request(`${url}/.well-known/change-password`)
  t.match(response.headers.get('location'), '/auth/pages/account')
})
