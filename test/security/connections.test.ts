/** Attacks 226 to 229: connections, whose providers customers choose, and domains, which they claim. */
import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { isPublicAddress } from '../../lib/core/public-addresses.js'
import { principalIn, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { ADA, confirmAddress, registerAt } from '../helpers/mail-app.js'
import { publicHost, replaceInternet } from '../helpers/public-host.js'
import { connect, proveAll, signInBy, startConnectionApp, startTenants } from '../helpers/tenants.js'

/** A provider of an attacker: what it answers by the path of the request. */
async function startHostile (t: Test, answers: (issuer: string) => Readonly<Record<string, RequestListener | object>>, timeLimit = 20_000) {
  const visits: string[] = []
  const host = await publicHost(t, (request, response) => {
    visits.push(`${request.method} ${request.headers.host?.replace(/:.*/, '')}${request.url}`)
    const answer = answers(host.origin)[request.url ?? '']
    if (typeof answer === 'function') return answer(request, response)
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}))
  })
  replaceInternet(t, {
    ...host.network,
    timeLimit,
    resolver: () => ({
      ...host.network.resolver(), resolve4: async (name: string) => name === 'inside.example' ? ['169.254.169.254'] : ['127.0.0.1']
    }),
    isPublic: address => address === '127.0.0.1' || isPublicAddress(address)
  })
  const { app } = await startConnectionApp(t)
  const made = await app.auth.connections.create({ name: 'Evil', issuer: host.origin, clientId: 'c', clientSecret: 'a secret of the client' })
  return { app, host, visits, browser: new Browser(app), ...made }
}

const DISCOVERY = '/.well-known/openid-configuration'

const metadata = (issuer: string, changes: object = {}) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  userinfo_endpoint: `${issuer}/userinfo`,
  ...changes
})

t.test('attack 226: what a customer\'s provider answers leads no request into the network of this machine', async t => {
  const inside = 'https://inside.example/secret'
  for (const [name, answer, code] of [
    ['a redirect', (_request, response) => { response.writeHead(302, { location: inside }).end() }, 'provider_error'],
    ['an endless answer', (_request, response) => { response.writeHead(200, {}).write('x'.repeat(300 * 1024)) }, 'provider_unavailable'],
    ['a compressed answer', (_request, response) => { response.writeHead(200, { 'content-encoding': 'gzip' }).end('x') }, 'provider_unavailable'],
    ['silence', () => {}, 'provider_unavailable']
  ] as ReadonlyArray<readonly [string, RequestListener, string]>) {
    const { browser, loginPath, visits } = await startHostile(t, () => ({ [DISCOVERY]: answer }), name === 'silence' ? 200 : 20_000)
    const { statusCode, body } = await browser.get(loginPath)
    t.match(JSON.parse(body), { statusCode, code }, name)
    t.strictSame(visits, [`GET client.example${DISCOVERY}`], name)
  }
  for (const endpoint of ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint']) {
    for (const url of ['http://inside.example/secret', 'javascript:alert(1)', 'file:///etc/passwd']) {
      const { browser, loginPath } = await startHostile(t, issuer => ({ [DISCOVERY]: metadata(issuer, { [endpoint]: url }) }))
      t.match((await browser.get(loginPath)).json(), { code: 'provider_error' }, `${endpoint} ${url}`)
    }
  }
  for (const url of [inside, 'https://127.0.0.1/secret', 'https://[::1]/secret', 'https://2130706433/secret']) {
    const { app, id, browser, loginPath, visits, redirectUri } = await startHostile(t, issuer => (
      { [DISCOVERY]: metadata(issuer, { token_endpoint: url }) }))
    const { location } = (await browser.get(loginPath)).headers
    const state = new URL(String(location)).searchParams.get('state') ?? ''
    const answer = await browser.get(`${new URL(redirectUri).pathname}?${new URLSearchParams({ code: 'x', state })}`)
    t.match(answer.json(), { code: 'provider_unavailable' }, url)
    t.strictSame(visits, [`GET client.example${DISCOVERY}`], url)
    const tested = (await browser.get(await app.auth.connections.test(id))).headers.location
    const test = new URLSearchParams({ code: 'x', state: new URL(String(tested)).searchParams.get('state') ?? '' })
    const page = await browser.get(`${new URL(redirectUri).pathname}?${test}`, { accept: 'text/html' })
    t.match(page.body, 'Step 3, tokens: a server could not be reached')
    t.notMatch(page.body, '169.254')
  }
})

t.test('attack 226: a name that leads into the network of this machine is no issuer', async t => {
  const { app } = await startHostile(t, () => ({}))
  const { loginPath } = await app.auth.connections.create({ name: 'Inside', issuer: 'https://inside.example', clientId: 'c', clientSecret: 'a secret' })

  const answer = await new Browser(app).get(loginPath)

  t.match(answer.json(), { code: 'provider_unavailable' })
  t.notMatch(answer.body, '169.254', 'the answer tells nothing of the network')
})

t.test('attack 227: a customer\'s provider cannot speak for the provider of another customer', async t => {
  const { tenants: [acme, other] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const [first, second] = [await connect(app, acme), await connect(app, other)]
  const ada = new Browser(app)
  await signInBy(ada, acme, first)

  // The same subject, an issuer of another one, and a response at the callback of another one.
  const same = new Browser(app)
  await signInBy(same, other, second)
  t.not(await userIdIn(same), await userIdIn(ada))
  const { issuer } = acme.idp
  const hostile = await startHostile(t, () => ({ [DISCOVERY]: metadata(issuer) }))
  t.match((await hostile.browser.get(hostile.loginPath)).json(), { code: 'provider_error' })
})

t.test('attack 227: a response of one customer is refused at the callback of another, and the state is used up', async t => {
  const { tenants: [acme, other] } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const [first, second] = [await connect(app, acme), await connect(app, other)]
  const browser = new Browser(app)
  const { location } = (await browser.get(first.loginPath)).headers
  const { pathname, search } = await acme.idp.authorize(String(location))

  t.match((await browser.get(pathname.replace(first.id, second.id) + search)).json(), { code: 'invalid_state' })
  t.match((await browser.get(pathname + search)).json(), { code: 'invalid_state' })
  t.equal(await userIdIn(browser), null)
})

t.test('attack 228: a connection gets no account by an address outside of its proven domains', async t => {
  const world = await startTenants(t)
  const { tenants: [acme, other] } = world
  const made = await startConnectionApp(t)
  const { app } = made
  await confirmAddress(made.browser, await registerAt(made), ADA.password)
  const evil = await connect(app, acme, { domains: ['evil.example', 'example.com'] })
  const owner = await connect(app, other, { domains: ['example.com'] })
  await proveAll(app, world, owner)
  world.records.set(String(evil.domains[0]?.record.name), [String(evil.domains[0]?.record.value)])
  t.match(await app.auth.connections.proveDomain(evil.id, 'evil.example'), { problem: null })

  for (const email of [
    'ada@example.com', 'ADA@EXAMPLE.COM', 'ada@sub.evil.example', 'ada@evil.example@example.com', 'ada@evil.example.',
    'x@evil.example,ada@example.com'
  ]) {
    const browser = new Browser(app)
    acme.idp.account = { sub: email, email, email_verified: true }
    await signInBy(browser, acme, evil)
    const principal = await principalIn(browser)
    t.ok(principal === null || principal.claims.email_verified === false, email)
    t.ok(principal === null || principal.userId !== await userIdIn(made.browser), email)
  }
})

t.test('attack 228: claims of a customer become no claims of the application', async t => {
  const { tenants: [acme] } = await startTenants(t)
  const { app } = await startConnectionApp(t, { connections: { claims: () => ({ plan: 'small', connection: 'mine' }) } })
  const connection = await connect(app, acme)
  acme.idp.account = { sub: 'ada', role: 'admin', groups: ['admins'], plan: 'large' }
  const browser = new Browser(app)

  await signInBy(browser, acme, connection)

  t.strictSame((await principalIn(browser))?.claims, { plan: 'small', connection: connection.id, sub: 'ada' })
})

t.test('attack 229: a record of another connection, of another domain or of a parent proves no domain', async t => {
  const { tenants: [acme, other], records } = await startTenants(t)
  const { app } = await startConnectionApp(t)
  const first = await connect(app, acme, { domains: ['a.example', 'b.example', 'sub.a.example'] })
  const second = await connect(app, other, { domains: ['a.example'] })
  const [a, b, sub] = first.domains.map(({ record }) => record.value)
  const [foreign] = second.domains.map(({ record }) => record.value)
  const challenge = (domain: string): string => `_svc-auth-challenge.${domain}`
  records.set(challenge('a.example'), [String(b), String(foreign), `${a}x`, ` ${a}`, String(a).toUpperCase()])
  records.set('a.example', [String(a), String(sub)])
  records.set(challenge('b.example'), [String(a)])
  records.set(challenge('example'), [String(a), String(b), String(sub)])

  for (const domain of ['a.example', 'b.example', 'sub.a.example']) {
    t.match(await app.auth.connections.proveDomain(first.id, domain), { problem: 'no_record' }, domain)
  }
})
