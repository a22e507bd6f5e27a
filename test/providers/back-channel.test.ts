import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { AuthError, GoogleProvider, type OidcProvider } from '../../lib/index.js'
import { GoogleStandIn } from '../fakes/google.js'
import { drops, html } from '../fakes/lies.js'
import { startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { listen } from '../helpers/loopback.js'
import { BASE_URL, checksFor, failurePage, responseOf, signIn } from './contract.js'

const DISCOVERY = 'GET accounts.google.com/.well-known/openid-configuration'
const KEYS = 'GET www.googleapis.com/oauth2/v3/certs'
const CHECKS = checksFor('google')

async function startGoogle (t: Test) {
  const google = await new GoogleStandIn().start(t)
  const { clientId, clientSecret, fetch } = google
  return { google, provider: new GoogleProvider({ clientId, clientSecret, fetch }) }
}

/** One sign-in as the flow runs it, without an application around it. */
async function authenticate (google: GoogleStandIn, provider: OidcProvider) {
  const parameters = await responseOf(google, provider)
  return provider.authenticate({ ...CHECKS, parameters })
}

t.test('a hundred people who sign in at once cost one request for the metadata and one for the keys', async t => {
  const { google, provider } = await startGoogle(t)
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider] })

  const landings = await Promise.all(Array.from({ length: 100 }, async () => signIn(new Browser(app), google, 'google')))

  t.ok(landings.every(({ headers }) => headers.location === '/'))
  const requests = google.backChannelRequests()
  t.equal(requests.filter(request => request === DISCOVERY).length, 1)
  t.equal(requests.filter(request => request === KEYS).length, 1)
  t.equal(requests.length, 102)
})

t.test('a request that fails fails all who waited for it, and no later caller', async t => {
  for (const endpoint of [DISCOVERY, KEYS]) {
    const { google, provider } = await startGoogle(t)
    const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider] })
    google.lies.set(endpoint, drops)
    const failures = await Promise.all(Array.from({ length: 10 }, async () => signIn(new Browser(app), google, 'google')))
    t.ok(failures.every(({ headers }) => headers.location === failurePage('provider_unavailable')), endpoint)

    google.lies.clear()
    const successes = await Promise.all(Array.from({ length: 10 }, async () => signIn(new Browser(app), google, 'google')))
    t.ok(successes.every(({ headers }) => headers.location === '/'), endpoint)
  }
})

t.test('little more than one of 100 MB of an answer is read', async t => {
  const { google, provider } = await startGoogle(t)
  google.idTokensAreBrief = true
  let sent = 0
  google.lies.set('GET openidconnect.googleapis.com/v1/userinfo', (_answer, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const chunk = Buffer.alloc(1_048_576, ' ')
    const send = () => {
      if (response.destroyed || sent >= 100 * chunk.length) return
      sent += chunk.length
      response.write(chunk, send)
    }
    send()
    return 'handled'
  })

  await t.rejects(authenticate(google, provider), { code: 'provider_error', cause: { message: /longer than 1048576 bytes/ } })

  // The rest is what the sockets of both sides hold.
  t.ok(sent < 20 * 1_048_576, `${sent} bytes were sent`)
})

t.test('a redirect is followed by no request, and takes no token anywhere', async t => {
  const elsewhere = createServer((_request, response) => { response.end() })
  elsewhere.on('request', () => { t.fail('somebody came') })
  const location = `http://127.0.0.1:${await listen(t, elsewhere)}/`
  const fake = await startFakeOpenIdProvider(t)
  fake.profile = { sub: 'ada' }
  for (const path of ['/.well-known/openid-configuration', '/token', '/jwks', '/userinfo']) {
    for (const status of [301, 302, 303, 307, 308]) {
      const provider = fake.provider()
      fake.lies.clear()
      fake.lies.set(path, () => ({ status, headers: { location }, body: '' }))
      const attempt = async () => {
        const url = await provider.authorizationUrl(CHECKS)
        const { searchParams: parameters } = new URL(fake.consent(url.href), BASE_URL)
        return provider.authenticate({ ...CHECKS, parameters })
      }
      await t.rejects(attempt(), { code: 'provider_error' }, `${status} at ${path}`)
    }
  }
})

t.test('a byte order mark in front of an answer is skipped', async t => {
  const { google, provider } = await startGoogle(t)
  google.lies.set(DISCOVERY, answer => ({ ...answer, body: `\ufeff${answer.body}` }))
  t.ok(await authenticate(google, provider))
})

t.test('an answer that is not JSON is not quoted', async t => {
  for (const body of ['{"access_token":"ya29.the-token', 'ya29.the-token', '{"access_token":ya29.the-token}']) {
    const { google, provider } = await startGoogle(t)
    google.lies.set('POST oauth2.googleapis.com/token', () => ({ status: 200, headers: { 'content-type': 'application/json' }, body }))
    const error: unknown = await authenticate(google, provider).catch((error: unknown) => error)
    t.match(error, { code: 'provider_error', cause: { message: /JSON/ } })
    t.notMatch(String((error as AuthError).cause), /ya29|the-token/)
  }
})

t.test('the status of an answer that cannot be used is in the log', async t => {
  const { google, provider } = await startGoogle(t)
  google.lies.set(DISCOVERY, () => html(502, '<h1>Bad gateway</h1>'))
  await t.rejects(authenticate(google, provider), { code: 'provider_unavailable', cause: { message: /status 502/ } })
})

t.test('an answer that is of no use does not keep its connection', async t => {
  const { google, provider } = await startGoogle(t)
  const connections = new Set<unknown>()
  google.lies.set(DISCOVERY, (_answer, response) => {
    connections.add(response.socket)
    return html(500, 'x'.repeat(200_000))
  })
  for (let attempt = 0; attempt < 30; attempt++) await t.rejects(authenticate(google, provider), { code: 'provider_unavailable' })
  t.ok(connections.size <= 3, `${connections.size} connections for 30 requests`)
})

t.test('a fetch of the application\'s own is not trusted to behave', async t => {
  t.test('a fetch that does not look at the signal holds up no sign-in', async t => {
    const { google } = await startGoogle(t)
    const { clientId, clientSecret } = google
    let isDeaf = true
    const fetch: typeof globalThis.fetch = async (url, init) => isDeaf ? new Promise(() => {}) : google.fetch(url, init)
    const provider = new GoogleProvider({ clientId, clientSecret, fetch, timeout: 1500 })
    await t.rejects(authenticate(google, provider), { code: 'provider_unavailable', cause: { message: /timeout/ } })
    isDeaf = false
    t.ok(await authenticate(google, provider))
  })

  t.test('a fetch may have responses of its own kind, as long as their bodies can be iterated', async t => {
    const { google } = await startGoogle(t)
    const { clientId, clientSecret } = google
    const fetch = async (url: string, init: RequestInit) => {
      const response = await google.fetch(url, init)
      const body = Readable.from(Buffer.from(await response.arrayBuffer()).toString().split(/(?<=,)/).map(part => Buffer.from(part)))
      return { status: response.status, headers: new Map(response.headers), body }
    }
    const provider = new GoogleProvider({ clientId, clientSecret, fetch: fetch as never })
    t.ok(await authenticate(google, provider))
  })
})

t.test('requests say who asks', async t => {
  const { google, provider } = await startGoogle(t)
  await authenticate(google, provider)
  const own = google.requests.filter(({ headers }) => headers.accept !== 'text/html')
  t.strictSame(new Set(own.map(({ headers }) => headers['user-agent'])), new Set(['fastify-svc-auth']))
})
