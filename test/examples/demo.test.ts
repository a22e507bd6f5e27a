import t from 'tap'
import { ExampleProcess, settingsFor, startExample } from './example-process.js'
import { Visitor, userIdOn } from './visitor.js'

const settings = await settingsFor(t)
const url = `http://localhost:${settings.PORT}`
const example = await startExample(t, settings)

t.test('with nothing configured the example starts and says which secrets it made up', async t => {
  t.match(example.output, `Ready: ${url}`)
  for (const setting of ['SVC_SESSION_SECRET', 'LOCAL_IDP_SECRET']) t.equal(example.output.split(setting).length, 2, `${setting} is named once`)
})

t.test('pages come with a strict policy, and their style sheet and script with the right type', async t => {
  const page = await new Visitor().open(url)

  t.equal(page.url.pathname, '/login', 'who is not signed in is sent to the sign-in page')
  t.equal(
    page.headers.get('content-security-policy'),
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' https:; form-action " +
      "'self'; base-uri 'none'; frame-ancestors 'none'"
  )
  t.notMatch(page.text, / style=| on[a-z]+=|<style|<script>/, 'nothing is inline')
  t.match(page.text, 'href="/auth/dev/login?next=/"')

  t.match((await fetch(`${url}/style.css`)).headers.get('content-type'), 'text/css')
  t.match((await fetch(`${url}/token.js`)).headers.get('content-type'), 'text/javascript')
  t.match(await new Visitor().open(`${url}/nowhere`), { status: 404, text: 'There is nothing at this address.' })
})

t.test('a visitor registers, signs out, mistypes the password and signs in again', async t => {
  const ada = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
  const visitor = new Visitor()
  await visitor.open(url)

  const claims = await visitor.press('Register', ada)
  t.equal(claims.url.pathname, '/')
  t.match(claims.text, '<dt>name</dt><dd>Ada Lovelace</dd>')
  t.equal(claims.headers.get('cache-control'), 'no-store')

  const signedOut = await visitor.press('Sign out')
  t.equal(signedOut.url.pathname, '/login')
  t.match(signedOut.text, '<p class="message" role="status">You are signed out.</p>')

  const refused = await visitor.press('Sign in', { ...ada, password: 'an engine of analogy' })
  t.equal(refused.url.searchParams.get('error'), 'invalid')
  t.match(refused.text, 'The e-mail or the password is wrong.')

  t.match((await visitor.press('Register', ada)).text, 'There is an account with this e-mail already. Sign in instead.')
  t.match((await visitor.press('Sign in', ada)).text, 'ada@example.com')
})

t.test('what people write is shown as text', async t => {
  const visitor = new Visitor()
  const login = await visitor.open(`${url}/login?error=<b>no</b>&next="><b>`)
  t.match(login.text, 'Something went wrong. Try again.')
  t.notMatch(login.text, '<b>')

  await visitor.press('Register', { name: '<img src=x onerror="alert(1)">', email: 'mallory@example.com', password: 'a mischievous one' })
  t.match((await visitor.open(url)).text, '<dd>&lt;img src=x onerror=&quot;alert(1)&quot;&gt;</dd>')
})

t.test('the requests of the token button fetch a token and verify it', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  t.equal((await visitor.post('/auth/local/token', {})).status, 401)

  const claims = await visitor.press('Register', { email: 'emmy@example.com', password: 'rings and invariants' })
  t.match(claims.text, '<script type="module" src="/token.js">')
  const { token } = await (await visitor.post('/auth/local/token', {})).json() as { token: string }
  const verified = await visitor.post('/auth/local/verify-token', { token })

  t.match(await verified.json(), { iss: 'svc-auth-local', email: 'emmy@example.com' })
})

t.test('the development provider signs in the user that its form names', async t => {
  const visitor = new Visitor()
  await visitor.open(url)

  const question = await visitor.follow('Continue with Development provider')
  t.match(question.text, 'Who do you want to be?')
  const grace = await visitor.press('Continue', { email: 'Grace@Example.com', name: 'Grace Hopper' })
  t.equal(grace.url.pathname, '/')
  for (const part of ['grace@example.com', 'Grace Hopper', '<dt>email_verified</dt><dd>true</dd>']) t.match(grace.text, part)

  await visitor.press('Sign out')
  await visitor.follow('Continue with Development provider')
  const joan = await visitor.press('Continue', { email: 'joan@example.com', name: 'Joan Clarke' })
  t.match(joan.text, 'joan@example.com', 'and somebody else the next time')

  await visitor.press('Sign out')
  await visitor.follow('Continue with Development provider')
  const again = await visitor.press('Continue', { email: 'grace@example.com', name: 'Grace Hopper' })
  t.equal(userIdOn(again.text), userIdOn(grace.text), 'the same e-mail is the same user')
})

t.test('a sign-in that is cancelled at the provider leads back to the sign-in page', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  const question = await visitor.follow('Continue with Development provider')

  const login = await visitor.press('Cancel')
  t.equal(login.url.pathname + login.url.search, '/login?error=access_denied')
  t.match(login.text, 'You cancelled the sign-in.')

  t.match(await visitor.open(question.url.href), { status: 400, text: 'The sign-in has ended' }, 'and the page of the provider is spent')
})

t.test('an account with a password is not taken over by way of the provider', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.press('Register', { email: 'sophie@example.com', password: 'primes and plates' })
  await visitor.press('Sign out')
  await visitor.follow('Continue with Development provider')

  const login = await visitor.press('Continue', { email: 'sophie@example.com', name: 'Not Sophie' })
  t.match(login.text, 'Sign in to it the way you did before.')
})

t.test('roles are given by administrators, from the pages of the application', async t => {
  const [admin, member] = [new Visitor(), new Visitor()]
  const pages = await Promise.all(([[admin, 'kurt'], [member, 'olga']] as const).map(async ([visitor, name]) => {
    await visitor.open(url)
    return visitor.press('Register', { email: `${name}@example.com`, password: 'a complete sentence' })
  }))
  const [kurt = '', olga = ''] = pages.map(({ text }) => userIdOn(text))
  t.equal(await new ExampleProcess(t, ['grant.ts', 'kurt@example.com', 'role=admin'], settings).end(), 0)
  const roleOf = async () => /<dt>role<\/dt><dd>(\w+)</.exec((await member.open(url)).text)?.[1]

  t.equal((await member.send(`${url}/admin/users/${olga}/role`, { role: 'admin' }, 'same-origin')).status, 403)
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

t.test('a new password that is too short is refused on the page of the form', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.press('Register', { email: 'ada.king@example.com', password: 'notes on notes' })
  await visitor.follow('Change password')

  const refused = await visitor.press('Change the password', { current: 'notes on notes', password: 'short' })

  t.equal(refused.url.pathname + refused.url.search, '/password?error=weak_password')
  t.match(refused.text, 'Choose a password of 8 to 1024 characters.')
})

t.test('a user without a password gets one by the link in the mailbox, which shows the newest mail first', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.follow('Continue with Development provider')
  await visitor.press('Continue', { email: 'wang@example.com', name: 'Wang Zhenyi' })
  await visitor.press('Sign out')

  const asked = await visitor.press('Send the link', { email: 'Wang@Example.com' })
  t.equal(asked.url.pathname + asked.url.search, '/login?done=reset_requested')
  await example.says('Mail to wang@example.com, to read at /mailbox: Choose a new password')
  const mailbox = await visitor.follow('its mailbox')
  t.equal(mailbox.headers.get('cache-control'), 'no-store')
  const [, link = ''] = /<h2>Choose a new password<\/h2>\s*<p class="faint">To wang@example\.com[^]*?<a href="([^"]*)"/.exec(mailbox.text) ?? []
  t.match(link, `${url}/auth/local/reset-password?token=`)
  t.notMatch(example.output, link, 'the log has no link')

  await visitor.open(link)
  t.match(await visitor.press('Set the password', { password: 'short' }), { status: 400, text: 'role="alert"' })
  t.equal((await visitor.press('Set the password', { password: 'eclipses explained' })).url.pathname, '/login')
  t.match((await visitor.press('Sign in', { email: 'wang@example.com', password: 'eclipses explained' })).text, 'Wang Zhenyi')
  const subjects = Array.from((await visitor.open(`${url}/mailbox`)).text.matchAll(/<h2>([^<]+)</g), ([, subject]) => subject)
  t.strictSame(subjects.slice(0, 2), ['Your password was changed', 'Choose a new password'])
})

t.test('password managers find the page for another password', async t => {
  const response = await new Visitor().request(`${url}/.well-known/change-password`)
  t.match(response.headers.get('location'), '/password')
})

t.test('the last sign-in method of a user stays', async t => {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.press('Register', { email: 'alonzo@example.com', password: 'lambda lambda' })

  t.match(await visitor.send(`${url}/unlink`, { provider: 'local' }, 'same-origin'), { status: 409, text: 'This is your only way to sign in.' })
  t.equal((await visitor.send(`${url}/unlink`, { provider: 'local' }, 'cross-site')).status, 403)
})
