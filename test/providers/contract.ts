import { randomUUID } from 'node:crypto'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { type AuthPluginOptions, type AuthorizationRequest, type ExternalProvider, MemoryAuthStore, type ProviderOptions } from '../../lib/index.js'
import { FAILURES, json } from '../fakes/lies.js'
import type { StandIn } from '../fakes/stand-in.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { some } from '../helpers/thorough.js'

export const BASE_URL = 'https://app.example'
const PAGE = `${BASE_URL}/sign-in`

/** A provider class and the stand-in of its service. */
export interface ProviderUnderTest<S extends StandIn> {
  start: (t: Test) => Promise<S>
  provider: (standIn: S, options?: Partial<ProviderOptions>) => ExternalProvider
  /** What the principal holds of the person whom a new stand-in knows. */
  claims: Record<string, unknown>
  /** That person changes his name and picture, or whatever else the provider tells. */
  changeProfile: (standIn: S) => void
  changedClaims: Record<string, unknown>
  /** From then on the provider tells no e-mail address. */
  hideEmail: (standIn: S) => void
  /** All that a first sign-in asks the provider for, in the names of `StandIn.lies`. */
  endpoints: readonly string[]
}

/** An application with one provider, and what it logs. */
export async function appWith (
  t: Test,
  provider: ExternalProvider,
  options: AuthPluginOptions = {}
): Promise<{ app: FastifyInstance, browser: Browser, lines: string[] }> {
  const lines: string[] = []
  const stream = { write: (line: string) => { lines.push(line) } }
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [provider], ...options }, { logger: { level: 'info', stream } })
  return { app, browser: new Browser(app), lines }
}

/** A store with a user who came from elsewhere. */
export async function storeWith (email: string, { emailVerified = true } = {}): Promise<{ store: MemoryAuthStore, userId: string }> {
  const store = new MemoryAuthStore()
  const userId = randomUUID()
  const link = { provider: 'elsewhere', subject: '1', claims: { sub: '1', email } }
  await new Accounts(store).createUser({ userId, email, emailVerified, name: null, claims: {}, link })
  return { store, userId }
}

/** Signs in as the person at the stand-in: from the sign-in page to the provider and back, or as far as it goes. */
export async function signIn (browser: Browser, standIn: StandIn, name: string): Promise<LightMyRequestResponse> {
  const login = await browser.get(`/auth/${name}/login`, { referer: PAGE })
  const { location = '' } = login.headers
  return location.startsWith('https://') ? browser.get(await standIn.authorize(location)) : login
}

/** What ties a response to its request, for tests that call a provider without an application around it. */
export function checksFor (name: string): AuthorizationRequest {
  return { redirectUri: `${BASE_URL}/auth/${name}/callback`, state: 's'.repeat(43), nonce: 'n'.repeat(43), codeVerifier: 'v'.repeat(43) }
}

/** The authorization response that the person's browser brings back, with changes; a parameter that is null is taken out. */
export async function responseOf (standIn: StandIn, provider: ExternalProvider, changes: Record<string, string | null> = {}): Promise<URLSearchParams> {
  const { href } = await provider.authorizationUrl(checksFor(provider.name))
  const { searchParams } = new URL(await standIn.authorize(href), BASE_URL)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) searchParams.delete(name)
    else searchParams.set(name, value)
  }
  return searchParams
}

/** The lines of a log that want the operator's eyes. */
export function errorsIn (lines: string[]): string[] {
  return lines.filter(line => JSON.parse(line).level >= 50)
}

/** Where a failed sign-in ends. */
export function failurePage (code: string): string {
  return `/sign-in?error=${code}`
}

/** What holds for every provider. */
export function providerContract<S extends StandIn> (
  t: Test,
  { start, provider, claims, changeProfile, changedClaims, hideEmail, endpoints }: ProviderUnderTest<S>
): void {
  t.test('a person signs in', async t => {
    const standIn = await start(t)
    const { name } = provider(standIn)
    const { browser } = await appWith(t, provider(standIn))

    const landing = await signIn(browser, standIn, name)

    t.equal(landing.headers.location, '/')
    const { principal } = (await browser.get('/me')).json()
    t.equal(principal.provider, name)
    t.strictSame(principal.claims, claims)
    t.strictSame(standIn.backChannelRequests(), endpoints)
  })

  t.test('the second sign-in of a person is the same user with what is new', async t => {
    const standIn = await start(t)
    const subject = provider(standIn)
    const { app, browser } = await appWith(t, subject)
    await signIn(browser, standIn, subject.name)
    const { userId } = (await browser.get('/me')).json().principal
    await app.auth.grant(userId, { role: 'admin' })
    changeProfile(standIn)

    const again = new Browser(app)
    await signIn(again, standIn, subject.name)

    const { principal } = (await again.get('/me')).json()
    t.equal(principal.userId, userId)
    t.strictSame(principal.claims, { ...changedClaims, role: 'admin' })
    t.match(await app.auth.links(userId), [{ claims: changedClaims }])
  })

  t.test('a person without an e-mail address signs in, twice', async t => {
    const standIn = await start(t)
    hideEmail(standIn)
    const { app, browser } = await appWith(t, provider(standIn))
    const { name } = provider(standIn)

    t.equal((await signIn(browser, standIn, name)).headers.location, '/')
    const { userId } = (await browser.get('/me')).json().principal
    const again = new Browser(app)
    await signIn(again, standIn, name)

    const { principal } = (await again.get('/me')).json()
    t.equal(principal.userId, userId)
    const { email: _, email_verified: __, ...rest } = claims
    t.strictSame(principal.claims, rest)
  })

  t.test('a person who says no is not signed in', async t => {
    const standIn = await start(t)
    standIn.consents = false
    const { browser } = await appWith(t, provider(standIn))

    const landing = await signIn(browser, standIn, provider(standIn).name)

    t.equal(landing.headers.location, failurePage('access_denied'))
    t.equal((await browser.get('/me')).json().principal, null)
    t.notOk(standIn.backChannelRequests().includes(endpoints.find(endpoint => endpoint.startsWith('POST ')) ?? ''), 'no token was asked for')
  })

  t.test('a code that has expired is provider_error', async t => {
    const standIn = await start(t)
    standIn.codesExpire = true
    const { browser } = await appWith(t, provider(standIn))
    t.equal((await signIn(browser, standIn, provider(standIn).name)).headers.location, failurePage('provider_error'))
    t.equal((await browser.get('/me')).json().principal, null)
  })

  t.test('a wrong secret is provider_error, and the log says what to look at', async t => {
    const standIn = await start(t)
    const wrong = provider(standIn, { clientSecret: 'not-the-secret' })
    const { browser, lines } = await appWith(t, wrong)

    t.equal((await signIn(browser, standIn, wrong.name)).headers.location, failurePage('provider_error'))

    t.equal((await browser.get('/me')).json().principal, null)
    t.match(JSON.parse(errorsIn(lines)[0] ?? '{}').err?.message, /clientSecret/)
    t.notMatch(lines.join(''), /not-the-secret/)
  })

  t.test('the provider takes the code from no client but the one that asked for it', async t => {
    const standIn = await start(t)
    const subject = provider(standIn)
    const checks = checksFor(subject.name)
    for (const change of [{ codeVerifier: 'w'.repeat(43) }, { redirectUri: `${BASE_URL}/elsewhere` }]) {
      await t.rejects(subject.authenticate({ ...checks, ...change, parameters: await responseOf(standIn, subject) }), { code: 'provider_error' })
    }
    const parameters = await responseOf(standIn, subject)
    await subject.authenticate({ ...checks, parameters })
    await t.rejects(subject.authenticate({ ...checks, parameters }), { code: 'provider_error' }, 'a code is good for once')
  })

  t.test('a callback URL that is not registered gets no further than the provider', async t => {
    const standIn = await start(t)
    const { browser } = await appWith(t, provider(standIn), { prefix: '/elsewhere' })
    const login = await browser.get(`/elsewhere/${provider(standIn).name}/login`)
    await t.rejects(standIn.authorize(login.headers.location ?? ''))
  })

  t.test('what the provider says of a failure reaches the log alone', async t => {
    const standIn = await start(t)
    const { name } = provider(standIn)
    standIn.consents = false
    const { browser, lines } = await appWith(t, provider(standIn))
    const answers = []
    for (const error of ['access_denied', 'server_said_no']) {
      const login = await browser.get(`/auth/${name}/login`, { referer: PAGE })
      const callback = new URL(await standIn.authorize(login.headers.location ?? ''), BASE_URL)
      callback.searchParams.set('error', error)
      callback.searchParams.set('error_description', `said <b>of ${error}</b>\r\nhere`)
      answers.push(await browser.get(callback.pathname + callback.search))
    }
    t.match(answers.map(({ headers }) => headers.location), [failurePage('access_denied'), failurePage('provider_error')])
    t.notMatch(JSON.stringify(answers.map(({ headers, body }) => [headers, body])), /said/)
    t.match(lines.join(''), /said <b>of access_denied<\/b> here/)
    t.match(lines.join(''), /said <b>of server_said_no<\/b> here/)
    t.notMatch(lines.join(''), /clientSecret/, 'nobody is sent looking for a mistake')
  })

  t.test('what was sent to the provider and comes back in an error stays out of the log', async t => {
    const withSecrets = /^POST |\/user|\/me/
    for (const endpoint of endpoints.filter(endpoint => withSecrets.test(endpoint))) {
      const standIn = await start(t)
      const { name } = provider(standIn)
      const { browser, lines } = await appWith(t, provider(standIn))
      const quoted: string[] = []
      standIn.lies.set(endpoint, () => {
        const { form, headers } = standIn.requests.at(-1) ?? { form: new URLSearchParams(), headers: {} }
        const secrets = [form.get('client_secret'), form.get('code'), form.get('code_verifier'), headers.authorization?.split(' ')[1]]
        quoted.push(...secrets.filter(secret => secret != null))
        return json(400, { error: 'invalid_request', error_description: `you sent ${quoted.join(' and ')}` })
      })
      t.equal((await signIn(browser, standIn, name)).headers.location, failurePage('provider_error'))
      t.ok(quoted.length > 0)
      for (const secret of quoted) t.notOk(lines.join('').includes(secret), `${endpoint} told ${secret}`)
      t.match(lines.join(''), /you sent \[redacted\]/)
    }
  })

  t.test('answers that cannot be used end the sign-in with their code', async t => {
    for (const [number, endpoint] of endpoints.entries()) {
      for (const [failure, [code, lie]] of some(Object.entries(FAILURES), 8, number)) {
        t.test(`${failure} at ${endpoint} is ${code}, and the next sign-in works`, async t => {
          const standIn = await start(t)
          const { name } = provider(standIn)
          const { browser } = await appWith(t, provider(standIn, { timeout: 400 }))
          standIn.lies.set(endpoint, lie)

          t.equal((await signIn(browser, standIn, name)).headers.location, failurePage(code))
          t.equal((await browser.get('/me')).json().principal, null)

          standIn.lies.clear()
          t.equal((await signIn(browser, standIn, name)).headers.location, '/')
        })
      }
    }
  })
}
