/** The processes of the example: how each of them starts, ends and refuses to start, and what takes a process of its own. */
import { join } from 'node:path'
import t from 'tap'
import { Authorization, SqlAuthStore } from '../../lib/index.js'
import { selfSigned } from '../helpers/certificate.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { ExampleProcess, free, occupy, portOf, settingsFor, startExample } from './example-process.js'
import { Visitor } from './visitor.js'

t.test('in production, with its secrets set, there is no development provider and no mailbox', async t => {
  const secrets = { SVC_SESSION_SECRET: 's'.repeat(32), LOCAL_IDP_SECRET: 'l'.repeat(32), SVC_AUTH_DATA_SECRET: 'd'.repeat(32) }
  const settings = { ...await settingsFor(t), NODE_ENV: 'production', ...secrets }
  const url = `http://localhost:${settings.PORT}`
  const example = await startExample(t, settings)

  t.equal(example.output, `Ready: ${url}\n`)
  t.notMatch((await new Visitor().open(`${url}/auth/pages/sign-in`)).text, /dev-provider|forgot|mailbox/i)
  t.equal((await new Visitor().open(`${url}/mailbox`)).status, 404)
  t.equal((await new Visitor().open(`${url}/auth/dev-provider/login`)).status, 404)
  await t.rejects(fetch(`http://localhost:${settings.DEV_PROVIDER_PORT}/.well-known/openid-configuration`))
})

t.test('what keeps the example from starting is one sentence that says what to set', async t => {
  const settings = await settingsFor(t)
  const other = await occupy()
  t.teardown(() => free(other))
  const taken = portOf(other)
  const mistakes: Array<[Record<string, string>, string]> = [
    [{ PORT: taken }, `Port ${taken} is in use; set PORT to a free one`],
    [{ DEV_PROVIDER_PORT: taken }, `Port ${taken} is in use; set DEV_PROVIDER_PORT to a free one`],
    [{ PORT: 'http' }, 'PORT must be a port number'],
    [{ DEMO_VERIFY: 'never' }, 'DEMO_VERIFY must be later, required or first'],
    [{ NODE_ENV: 'production', DEMO_VERIFY: 'first' }, 'needs sendMail'],
    [{ SVC_SESSION_SECRET: 'short' }, 'set SVC_SESSION_SECRET'],
    [{ LOCAL_AUTH_DB: 'postgres://app:pass/word@localhost/app' }, 'target must be a whole postgres: URL'],
    [{ EXAMPLE_DB: '/nowhere/example.db' }, 'EXAMPLE_DB must name a file that can be written'],
    [{ GOOGLE_CLIENT_ID: 'x' }, 'GOOGLE_CLIENT_SECRET is not set, but GOOGLE_CLIENT_ID is']
  ]
  for (const [mistake, sentence] of mistakes) {
    const example = new ExampleProcess(t, ['demo/server.ts'], { ...settings, ...mistake })
    t.equal(await example.end(), 1)
    t.match(example.output, sentence)
    t.notMatch(example.output, /^ +at |pass\/word/m, 'no stack, no secret')
  }
})

t.test('SIGTERM ends the example in order', async t => {
  const example = await startExample(t, await settingsFor(t))

  await example.kill('SIGTERM')
  t.equal(await example.end(), 0)
})

t.test('an admin is who was granted it, and stays signed in after a crash', async t => {
  const settings = await settingsFor(t)
  const url = `http://localhost:${settings.PORT}`
  const hypatia = { email: 'hypatia@example.com', password: 'conics, commented' }
  const example = await startExample(t, settings)
  const visitor = new Visitor()

  const login = await visitor.open(`${url}/admin`)
  t.equal(login.url.pathname + login.url.search, '/auth/pages/sign-in?next=%2Fadmin')
  const refused = await visitor.register(hypatia)
  t.equal(refused.url.pathname, '/admin', 'the sign-in leads to the page that was asked for')
  t.match(refused, { status: 403, text: 'npx tsx lib/command/main.ts grant hypatia@example.com --claim role=admin' })

  const grant = new ExampleProcess(t, ['../lib/command/main.ts', 'grant', 'Hypatia@example.com', '--claim', 'role=admin'], settings)
  t.equal(await grant.end(), 0)
  t.match(grant.output, '"role": "admin"')
  await visitor.becomeAdministrator(url)
  t.match(visitor.page, { status: 200, url: { pathname: '/admin' } }, 'without another sign-in')

  await example.kill()
  await startExample(t, settings)
  t.equal((await visitor.open(`${url}/admin`)).status, 200, 'and without another one when the process is new')
})

t.test('an administrator finds users by the beginning of their e-mail, page by page', async t => {
  const settings = await settingsFor(t)
  const url = `http://localhost:${settings.PORT}`
  const store = new SqlAuthStore(settings.LOCAL_AUTH_DB)
  const authorization = new Authorization(store)
  for (let number = 1; number <= 12; number++) await authorization.createUser({ email: `kurt${number}@example.com` })
  await authorization.createUser({ name: 'A user without an e-mail' })
  await store.close()
  await startExample(t, settings)
  const admin = new Visitor()
  await admin.open(url)
  await admin.register({ email: 'sofia@example.com', password: 'tops that turn' })
  t.equal(await new ExampleProcess(t, ['../lib/command/main.ts', 'grant', 'sofia@example.com', '--claim', 'role=admin'], settings).end(), 0)
  const listed = () => Array.from(admin.page.text.matchAll(/<strong><a [^>]+>([^<]+)<\/a><\/strong> <small>/g), ([, who]) => who)

  await admin.becomeAdministrator(url)
  const first = listed()
  await admin.follow('Next page')
  const second = listed()
  t.equal(first.length, 10)
  t.equal(new Set([...first, ...second]).size, 14)
  t.ok([...first, ...second].includes('A user without an e-mail'))
  t.notMatch(admin.page.text, 'Next page')

  await admin.open(`${url}/admin?search=KURT1`)
  t.strictSame(listed().sort(), ['kurt10@example.com', 'kurt11@example.com', 'kurt12@example.com', 'kurt1@example.com'])
  const { text } = await admin.press('Block')
  t.match(text, 'The user is blocked and signed out.')
  t.equal(admin.page.url.searchParams.get('search'), 'KURT1', 'the list is the same afterwards')
  t.match((await admin.press('Unblock')).text, 'The user may sign in again.')
  t.match((await admin.open(`${url}/admin?search=kurt13`)).text, 'No user has an e-mail, a domain or a name that begins with “kurt13”.')
  t.equal((await admin.open(`${url}/admin?after=nothing`)).status, 400)
})

t.test('a provider whose settings are there is shown, and signs people in', async t => {
  const tls = await selfSigned('localhost')
  const own = await settingsFor(t)
  const url = `http://localhost:${own.PORT}`
  const idp = await startOpenIdProvider(t, { redirectUris: [`${url}/auth/company/callback`], tls })
  await startExample(t, {
    ...own,
    GITHUB_CLIENT_ID: 'the-id-at-github',
    GITHUB_CLIENT_SECRET: 'the-secret-at-github',
    OIDC_NAME: 'company',
    OIDC_DISCOVERY_URL: `${idp.issuer}/.well-known/openid-configuration`,
    OIDC_CLIENT_ID: idp.clientId,
    OIDC_CLIENT_SECRET: idp.clientSecret,
    NODE_EXTRA_CA_CERTS: join(t.testdir({ 'ca.pem': tls.cert }), 'ca.pem')
  })
  const visitor = new Visitor()

  const login = await visitor.open(`${url}/auth/pages/sign-in`)
  t.match(login.text, /Continue with GitHub[^]*Continue with Company[^]*Continue with Dev Provider/)
  const atGitHub = await fetch(`${url}/auth/github/login`, { redirect: 'manual' })
  t.match(atGitHub.headers.get('location'), /^https:\/\/github\.com\/login\/oauth\/authorize\?client_id=the-id-at-github&/)

  const redirect = await visitor.request(`${url}/auth/company/login?next=/`)
  const callback = await idp.authorize(redirect.headers.get('location') ?? '')
  const claims = await visitor.open(callback.href)
  t.equal(claims.url.href, `${url}/#`)
  t.match(claims.text, /signed in with <strong>company<\/strong>[^]*ada@example\.com/)
})
