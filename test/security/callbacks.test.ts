import { createHash } from 'node:crypto'
import type { FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import {
  type AuthPluginOptions, Auth0Provider, type ExternalProvider, FacebookProvider, GitHubProvider, GoogleProvider,
  MemoryAuthStore, MicrosoftProvider
} from '../../lib/index.js'
import { Auth0StandIn } from '../fakes/auth0.js'
import { FacebookStandIn } from '../fakes/facebook.js'
import { GitHubStandIn } from '../fakes/github.js'
import { GoogleStandIn } from '../fakes/google.js'
import { json } from '../fakes/lies.js'
import { MicrosoftStandIn } from '../fakes/microsoft.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import type { StandIn } from '../fakes/stand-in.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { SESSION_STORES } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { isThorough, some } from '../helpers/thorough.js'

const BASE_URL = 'https://app.example'
const TEN_MINUTES_MS = 10 * 60 * 1000
const EVIL = 'https://evil.example'

const ADA = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' }
const MALLORY = { sub: 'mallory', email: 'mallory@example.com', email_verified: true, name: 'Mallory' }

/** The back channel of an application: notes each token request, whoever gets it. No other request to a provider is a POST. */
class Wire {
  readonly tokenRequests: URLSearchParams[] = []

  through (fetch: typeof globalThis.fetch): typeof globalThis.fetch {
    return async (input, init = {}) => {
      if (init.method === 'POST') this.tokenRequests.push(new URLSearchParams(String(init.body)))
      return fetch(input, init)
    }
  }
}

interface Kind {
  provider: ExternalProvider
  /** The person says yes: what his browser comes back with. */
  comeBack: (authorizationUrl: string) => string | Promise<string>
}

/** The six kinds of provider, by name, with one wire to all of them. */
async function startKinds (t: Test, wire: Wire): Promise<Record<string, Kind>> {
  const google = await new GoogleStandIn().start(t)
  const github = await new GitHubStandIn().start(t)
  const microsoft = await new MicrosoftStandIn().start(t)
  const facebook = await new FacebookStandIn().start(t)
  const auth0 = await new Auth0StandIn().start(t)
  const fake = await startFakeOpenIdProvider(t)
  // Another person than at GitHub, whose address it would be.
  facebook.user = { ...facebook.user, email: 'emmy@example.com' }
  fake.profile = { ...fake.profile, email: 'fay@example.com' }
  const clientOf = ({ clientId, clientSecret, fetch }: StandIn) => ({ clientId, clientSecret, fetch: wire.through(fetch) })
  const comeBackFrom = (standIn: StandIn) => async (url: string) => standIn.authorize(url)
  return {
    google: { provider: new GoogleProvider(clientOf(google)), comeBack: comeBackFrom(google) },
    github: { provider: new GitHubProvider(clientOf(github)), comeBack: comeBackFrom(github) },
    microsoft: { provider: new MicrosoftProvider(clientOf(microsoft)), comeBack: comeBackFrom(microsoft) },
    facebook: { provider: new FacebookProvider(clientOf(facebook)), comeBack: comeBackFrom(facebook) },
    auth0: { provider: new Auth0Provider({ ...clientOf(auth0), domain: 'tenant.eu.auth0.com' }), comeBack: comeBackFrom(auth0) },
    fake: { provider: fake.provider({ fetch: wire.through(fetch) }), comeBack: url => fake.consent(url) }
  }
}

/** Goes to a provider's login route; the URL of the authorization request. */
async function authorizationUrl (browser: Browser, login: string, headers: Record<string, string> = {}): Promise<string> {
  const { statusCode, headers: { location = '' } } = await browser.get(login, headers)
  if (statusCode !== 302 || new URL(location, BASE_URL).origin === BASE_URL) throw new Error(`${login} answered ${statusCode} ${location}`)
  return location
}

/** The callback with other parameters in place of those of these names; a name without values is taken out. */
function changed (callback: string, changes: Record<string, readonly string[]>): string {
  const { pathname, searchParams } = new URL(callback, BASE_URL)
  for (const [name, values] of Object.entries(changes)) {
    searchParams.delete(name)
    for (const value of values) searchParams.append(name, value)
  }
  return `${pathname}?${searchParams}`
}

/** Sends a callback as a script would, which is answered with a status and a code; the person stays who he was. */
async function assertRefused (t: Test, browser: Browser, callback: string, [statusCode, error]: readonly [number, string], message: string): Promise<void> {
  const before = await principalIn(browser)
  const response = await browser.get(callback, { accept: 'application/json' })
  t.match({ statusCode: response.statusCode, body: response.json() }, { statusCode, body: { code: error } }, message)
  t.strictSame(await principalIn(browser), before, `${message}: the person stays who he was`)
}

const INVALID_STATE = [400, 'invalid_state'] as const
const PROVIDER_ERROR = [502, 'provider_error'] as const

for (const [storeName, createSessionStore] of some(SESSION_STORES, 2, 1)) {
  t.test(`the rules hold with ${storeName}`, async t => {
    async function startWithKinds (t: Test) {
      const wire = new Wire()
      const kinds = await startKinds(t, wire)
      const providers = Object.values(kinds).map(({ provider }) => provider)
      const app = await startApp(t, { baseUrl: BASE_URL, providers, session: { secret: SESSION_SECRET, store: createSessionStore() } })
      return { app, wire, kinds: Object.entries(kinds) }
    }

    /** An application with two providers, `fake` and `other`, that know different people. */
    async function start (t: Test, options: AuthPluginOptions = {}, server: FastifyServerOptions = {}) {
      const wire = new Wire()
      const [fake, other] = [await startFakeOpenIdProvider(t), await startFakeOpenIdProvider(t)]
      fake.profile = ADA
      other.profile = { sub: 'bob', email: 'bob@example.com', email_verified: true, name: 'Bob' }
      const store = createSessionStore()
      const providers = [fake.provider({ fetch: wire.through(fetch) }), other.provider({ name: 'other', fetch: wire.through(fetch) })]
      const app = await startApp(t, { baseUrl: BASE_URL, providers, local: localProvider(), session: { secret: SESSION_SECRET, store }, ...options }, server)
      return { app, wire, fake, other, store }
    }

    t.test('attack 1: a callback with an unknown state is invalid_state at every kind of provider, before any token request', async t => {
      const { app, wire, kinds } = await startWithKinds(t)
      const queries = [
        '', '?code=x', '?code=x&state=', '?code=x&state=guess', '?code=x&state=%00', '?code=x&state=undefined',
        '?code=x&state=__proto__', '?code=x&state[]=guess',
        '?code=x&state=a&state=b', `?code=x&state=${'s'.repeat(4096)}`, '?error=access_denied', '?error=access_denied&state=guess'
      ]
      for (const [number, [name, { comeBack }]] of kinds.entries()) {
        const withPending = new Browser(app)
        const url = await authorizationUrl(withPending, `/auth/${name}/login`)
        for (const query of some(queries, 3, number)) {
          await assertRefused(t, new Browser(app), `/auth/${name}/callback${query}`, INVALID_STATE, `${name}, without a session: ${query}`)
          await assertRefused(t, withPending, `/auth/${name}/callback${query}`, INVALID_STATE, `${name}, with a sign-in under way: ${query}`)
        }
        t.strictSame(wire.tokenRequests, [], name)

        t.equal((await withPending.get(await comeBack(url))).headers.location, '/', `${name}: with its state the sign-in goes on`)
        t.equal(wire.tokenRequests.splice(0).length, 1, `${name}: and with the one token request that it takes`)
      }
    })

    t.test('attack 2: the finished response of an attacker does not sign in the victim', async t => {
      const { app, wire, fake } = await start(t)
      const attacker = new Browser(app)
      const victims: Record<string, (browser: Browser) => Promise<unknown>> = {
        'without a session': async () => {},
        'with a session of no user': async browser => browser.get(fake.consent(
          await authorizationUrl(browser, '/auth/fake/login'),
          { code: null, error: 'access_denied' }
        )),
        'signed in': async browser => browser.get(fake.consent(await authorizationUrl(browser, '/auth/fake/login')))
      }
      for (const [situation, prepare] of Object.entries(victims)) {
        const victim = new Browser(app)
        await prepare(victim)
        const own = situation === 'without a session' ? null : fake.consent(await authorizationUrl(victim, '/auth/fake/login?next=/own'))
        const planted = fake.consent(await authorizationUrl(attacker, '/auth/fake/login'))
        wire.tokenRequests.length = 0

        await assertRefused(t, victim, planted, INVALID_STATE, situation)
        await assertRefused(t, victim, changed(planted, { code: [], error: ['access_denied'] }), INVALID_STATE, `${situation}, an error`)

        t.strictSame(wire.tokenRequests, [], situation)
        if (own !== null) t.equal((await victim.get(own)).headers.location, '/own', `${situation}: a sign-in of his own goes on`)
        fake.profile = MALLORY
        t.equal((await attacker.get(planted)).headers.location, '/', `${situation}: it is the attacker's still`)
        t.match(await principalIn(attacker), { claims: { sub: 'mallory' } })
        fake.profile = ADA
      }
    })

    t.test('attack 3: a callback that is sent again, also after the sign-out, is invalid_state', async t => {
      const { app, wire, fake } = await start(t)
      const browser = new Browser(app)
      const callback = fake.consent(await authorizationUrl(browser, '/auth/fake/login'))
      const anonymous = new Browser(app, browser.cookies)
      await browser.get(callback)
      const signedIn = new Browser(app, browser.cookies)

      for (const jar of [browser, anonymous, new Browser(app)]) await assertRefused(t, jar, callback, INVALID_STATE, 'after the sign-in')
      await browser.post('/auth/local/revoke')
      for (const jar of [browser, anonymous, signedIn, new Browser(app)]) {
        await assertRefused(t, jar, callback, INVALID_STATE, 'after the sign-out')
        t.equal(await principalIn(jar), null)
      }
      t.equal(wire.tokenRequests.length, 1)
    })

    t.test('attack 3: one of ten callbacks at once signs in, with one token request', async t => {
      const { app, wire, fake } = await start(t)
      const browser = new Browser(app)
      const callback = fake.consent(await authorizationUrl(browser, '/auth/fake/login'))
      const jars = Array.from({ length: 10 }, () => new Browser(app, browser.cookies))

      const answers = await Promise.all(jars.map((jar, index) => jar.get(`${callback}&n=${index}`)))

      t.strictSame(answers.map(({ statusCode }) => statusCode).sort(), [302, ...Array(9).fill(400)])
      t.strictSame([...new Set(answers.filter(({ statusCode }) => statusCode === 400).map(answer => answer.json().code))], ['invalid_state'])
      t.equal(wire.tokenRequests.length, 1)
      const principals = await Promise.all(jars.map(principalIn))
      t.equal(principals.filter(principal => principal !== null).length, 1)

      for (const jar of jars) await jar.post('/auth/local/revoke')
      for (const jar of jars) await assertRefused(t, jar, callback, INVALID_STATE, 'after the sign-out')
      t.equal(wire.tokenRequests.length, 1)
    })

    t.test('attack 4: sign-ins in several tabs finish each with its own provider and page, or are invalid_state', async t => {
      const tabs = [{ provider: 'fake', next: '/one' }, { provider: 'other', next: '/two' }, { provider: 'fake', next: '/three' }]

      /** Starts all of them at once; what each tab comes back with. */
      async function startTabs (browser: Browser, idps: Record<string, FakeOpenIdProvider>) {
        const urls = await Promise.all(tabs.map(({ provider, next }) => authorizationUrl(
          browser,
          `/auth/${provider}/login?next=${next}`,
          { referer: `${BASE_URL}${next}/sign-in` }
        )))
        return tabs.map((tab, index) => {
          const url = urls[index] ?? ''
          const idp = idps[tab.provider]
          return { ...tab, callback: idp?.consent(url) ?? '', denial: idp?.consent(url, { code: null, error: 'access_denied' }) ?? '' }
        }).reverse()
      }

      for (const isSignedIn of [false, true]) {
        t.test(`tabs finish one after the other in another order, ${isSignedIn ? 'signed in' : 'anonymous'}`, async t => {
          const { app, fake, other } = await start(t)
          const browser = new Browser(app)
          const first = await authorizationUrl(browser, '/auth/fake/login')
          if (isSignedIn) await browser.get(fake.consent(first))
          // A user who signed in since a tab was opened is not exchanged for another one.
          const expected = isSignedIn ? ['/three', '/two', '/one/sign-in?error=invalid_state'] : ['/three', '/two/sign-in?error=invalid_state', '/one']
          const outcomes = []
          for (const { provider, next, callback } of await startTabs(browser, { fake, other })) {
            const landing = await browser.get(callback)
            outcomes.push(landing.headers.location)
            if (landing.headers.location === next) t.match(await principalIn(browser), { provider })
          }
          t.strictSame(outcomes, expected)
        })
      }

      t.test('tabs finish all at once', async t => {
        const { app, fake, other } = await start(t)
        const browser = new Browser(app)
        await authorizationUrl(browser, '/auth/fake/login')
        const callbacks = await startTabs(browser, { fake, other })

        const outcomes = await Promise.all(callbacks.map(async ({ provider, next, callback }) => {
          const jar = new Browser(app, browser.cookies)
          const { statusCode, headers: { location }, body } = await jar.get(callback)
          return {
            isRefused: statusCode === 400 && body.includes('invalid_state'),
            isFinished: location === next && (await principalIn(jar))?.provider === provider
          }
        }))

        t.ok(outcomes.every(({ isRefused, isFinished }) => isRefused !== isFinished), JSON.stringify(outcomes))
        t.ok(outcomes.some(({ isFinished }) => isFinished))
      })

      t.test('tabs start without a cookie yet, as when a browser restores them', async t => {
        const { app, fake, other } = await start(t)
        const browser = new Browser(app)
        const outcomes = []
        for (const { callback } of await startTabs(browser, { fake, other })) outcomes.push((await browser.get(callback)).headers.location)
        t.strictSame(outcomes, ['/three', '/two/sign-in?error=invalid_state', '/one'], 'each, but not as another user')
        t.match(await principalIn(browser), { claims: { sub: 'ada' } })
        t.equal(browser.cookies.size, 2, 'the cookies of the starts are gone, but for that of the refused one')
      })

      t.test('tabs are left when the person says no', async t => {
        const { app, fake, other } = await start(t)
        const browser = new Browser(app)
        await authorizationUrl(browser, '/auth/fake/login')
        for (const { next, denial } of await startTabs(browser, { fake, other })) {
          t.equal((await browser.get(denial)).headers.location, `${next}/sign-in?error=access_denied`)
        }
      })
    })

    t.test('attack 5: a sign-in that is older than ten minutes is invalid_state, and nothing is left of it', async t => {
      const { app, wire, fake, store } = await start(t)
      const browser = new Browser(app)
      const [withTimeout, tooLate, denied] = [
        await authorizationUrl(browser, '/auth/fake/login'),
        await authorizationUrl(browser, '/auth/fake/login'),
        await authorizationUrl(browser, '/auth/fake/login')
      ].map(url => fake.consent(url))

      await t.test('a sign-in just in time succeeds', async t => {
        advanceClock(t, TEN_MINUTES_MS - 10_000)
        t.equal((await browser.get(withTimeout ?? '')).headers.location, '/')
      })
      wire.tokenRequests.length = 0
      await t.test('a sign-in a second too late is invalid_state', async t => {
        advanceClock(t, TEN_MINUTES_MS + 1000)
        await assertRefused(t, browser, tooLate ?? '', INVALID_STATE, 'code')
        await assertRefused(t, browser, changed(denied ?? '', { code: [], error: ['access_denied'] }), INVALID_STATE, 'error')
      })
      t.strictSame(wire.tokenRequests, [])
      if (store instanceof SlowSessionStore) t.notOk([...store.entries.keys()].some(id => id.includes('pending')), 'this store forgets nothing by itself')
    })

    t.test('attack 6: the state of one provider is invalid_state at another, and no good at either afterwards', async t => {
      const { app, wire, fake, other } = await start(t)
      const browser = new Browser(app)
      const own = other.consent(await authorizationUrl(browser, '/auth/other/login'))
      const variants: Record<string, (callback: string) => string> = {
        'as it came': callback => callback,
        'without iss': callback => changed(callback, { iss: [] }),
        'with the iss of the other one': callback => changed(callback, { iss: [other.issuer] }),
        'with a code of the other one': callback => changed(callback, { code: ['c'], iss: [other.issuer] }),
        'as an error': callback => changed(callback, { code: [], error: ['access_denied'] })
      }
      for (const [variant, change] of Object.entries(variants)) {
        const callback = fake.consent(await authorizationUrl(browser, '/auth/fake/login'))
        const elsewhere = change(callback.replace('/auth/fake/', '/auth/other/'))

        await assertRefused(t, browser, elsewhere, INVALID_STATE, `${variant}, at the other one`)
        await assertRefused(t, browser, elsewhere, INVALID_STATE, `${variant}, at the other one again`)
        await assertRefused(t, browser, callback, INVALID_STATE, `${variant}, at its own afterwards`)
      }
      t.strictSame(wire.tokenRequests, [])
      t.equal((await browser.get(own)).headers.location, '/', 'the sign-in at the other one goes on')
      t.match(await principalIn(browser), { provider: 'other' })
    })

    t.test('attack 7: a response that another issuer may have sent is refused before any token request', async t => {
      for (const isAnnounced of [true, false]) {
        t.test(isAnnounced ? 'where the provider announces iss' : 'where the provider announces nothing', async t => {
          const { app, wire, fake } = await start(t)
          if (!isAnnounced) fake.metadata.authorization_response_iss_parameter_supported = undefined
          const { issuer } = fake
          const variants = [
            [EVIL], [`${issuer}/`], [''], [` ${issuer}`], [issuer.toUpperCase()], [issuer.replace('//', '//user@')],
            [`${issuer}\0`], [encodeURIComponent(issuer)],
            [issuer, EVIL], [EVIL, issuer], [issuer, issuer], ...(isAnnounced ? [[]] : [])
          ]
          for (const iss of some(variants, 2, isAnnounced ? 1 : 0)) {
            const browser = new Browser(app)
            const callback = fake.consent(await authorizationUrl(browser, '/auth/fake/login'))
            await assertRefused(t, browser, changed(callback, { iss }), PROVIDER_ERROR, `iss ${JSON.stringify(iss)}`)
            await assertRefused(t, browser, callback, INVALID_STATE, `iss ${JSON.stringify(iss)}: the response was good for one try`)
          }
          const browser = new Browser(app)
          const denial = fake.consent(await authorizationUrl(browser, '/auth/fake/login'), { code: null, error: 'access_denied' })
          await assertRefused(t, browser, changed(denial, { iss: [EVIL] }), PROVIDER_ERROR, 'nor does another issuer say that the person said no')
          t.strictSame(wire.tokenRequests, [])
        })
      }

      t.test('a foreign iss is refused at every kind of provider', async t => {
        const { app, wire, kinds } = await startWithKinds(t)
        for (const [number, [name, { comeBack }]] of kinds.entries()) {
          for (const iss of some([[EVIL], [''], [EVIL, EVIL]], 3, number)) {
            const browser = new Browser(app)
            const callback = await comeBack(await authorizationUrl(browser, `/auth/${name}/login`))
            await assertRefused(t, browser, changed(callback, { iss }), PROVIDER_ERROR, `${name}, iss ${JSON.stringify(iss)}`)
          }
        }
        t.strictSame(wire.tokenRequests, [])
      })

      t.test('a provider that sends people on to another one gets nothing of what they bring back', async t => {
        const { app, wire, fake, other } = await start(t)
        for (const isAnnounced of [true, false]) {
          other.metadata.authorization_response_iss_parameter_supported = isAnnounced ? true : undefined
          const browser = new Browser(app)
          const request = new URL(await authorizationUrl(browser, '/auth/other/login'))
          const forwarded = new URL(`${fake.issuer}/authorize${request.search}`)
          t.equal(
            request.searchParams.get('redirect_uri'),
            `${BASE_URL}/auth/other/callback`,
            'each provider has a redirect URI of its own, which no other one knows'
          )
          await assertRefused(t, browser, fake.consent(forwarded.href), PROVIDER_ERROR, 'by way of the redirect URI of the attacker')

          const again = new URL(await authorizationUrl(browser, '/auth/other/login'))
          again.searchParams.set('redirect_uri', `${BASE_URL}/auth/fake/callback`)
          await assertRefused(t, browser, fake.consent(again.href), INVALID_STATE, 'by way of that of the honest one')
        }
        t.strictSame(wire.tokenRequests, [])
      })
    })

    t.test('attack 8: every sign-in has a verifier of its own, sent as S256, at every kind of provider', async t => {
      const { app, wire, kinds } = await startWithKinds(t)
      for (const [name, { comeBack }] of kinds) {
        const browser = new Browser(app)
        const challenges: Array<string | null> = []
        for (const query of ['', '?code_challenge_method=plain&code_challenge=known&code_verifier=known&state=known&nonce=known']) {
          const url = await authorizationUrl(browser, `/auth/${name}/login${query}`)
          const { searchParams } = new URL(url)
          t.strictSame(searchParams.getAll('code_challenge_method'), ['S256'], name)
          challenges.push(searchParams.get('code_challenge'))
          t.notMatch(url, /known/, `${name}: the login route takes none of it from its query`)
          await browser.get(await comeBack(url))
        }
        const verifiers = wire.tokenRequests.splice(0).map(form => form.get('code_verifier') ?? '')
        for (const verifier of verifiers) t.match(verifier, /^[\w.~-]{43,128}$/, name)
        t.strictSame(verifiers.map(verifier => createHash('sha256').update(verifier).digest('base64url')), challenges, name)
        t.equal(new Set(verifiers).size, 2, name)
      }
    })

    t.test('attack 8: a code that was injected into the sign-in of another user is refused at every kind of provider', async t => {
      const { app, kinds } = await startWithKinds(t)
      for (const [name, { comeBack }] of kinds) {
        const [attacker, victim] = [new Browser(app), new Browser(app)]
        const stolen = new URL(await comeBack(await authorizationUrl(attacker, `/auth/${name}/login`)), BASE_URL).searchParams.getAll('code')
        const own = await comeBack(await authorizationUrl(victim, `/auth/${name}/login`))
        await assertRefused(t, victim, changed(own, { code: stolen }), PROVIDER_ERROR, name)
        t.equal(await principalIn(victim), null, name)
      }
    })

    t.test('attack 8: nothing that a provider announces makes a sign-in do without S256, and no other code is taken', async t => {
      for (const methods of some([['S256', 'plain'], ['plain'], [], undefined, 'plain', null], 2, 1)) {
        const { app, wire, fake } = await start(t)
        fake.metadata.code_challenge_methods_supported = methods
        const [attacker, victim] = [new Browser(app), new Browser(app)]
        const attackersUrl = await authorizationUrl(attacker, '/auth/fake/login')
        const url = await authorizationUrl(victim, '/auth/fake/login')
        t.match(new URL(url).searchParams.get('code_challenge'), /^[\w-]{43}$/)
        t.equal(new URL(url).searchParams.get('code_challenge_method'), 'S256')

        const stripped = new URL(attackersUrl)
        for (const parameter of ['code_challenge', 'code_challenge_method']) stripped.searchParams.delete(parameter)
        const code = new URL(fake.consent(stripped.href), BASE_URL).searchParams.getAll('code')
        await assertRefused(
          t,
          victim,
          changed(fake.consent(url), { code }),
          PROVIDER_ERROR,
          `${JSON.stringify(methods)}: a code that was issued without a challenge`
        )
        t.match(wire.tokenRequests.map(form => form.get('code_verifier')), [/^[\w-]{43}$/])

        t.equal((await victim.get(fake.consent(await authorizationUrl(victim, '/auth/fake/login')))).headers.location, '/')
        t.match(wire.tokenRequests.map(form => form.get('code_verifier')), [/^[\w-]{43}$/, /^[\w-]{43}$/])
      }
    })

    t.test('attack 8: at a provider that looks at no verifier an injected code fails all the same', async t => {
      const { app, fake } = await start(t)
      const [attacker, victim] = [new Browser(app), new Browser(app)]
      const attackersUrl = new URL(await authorizationUrl(attacker, '/auth/fake/login'))
      const own = fake.consent(await authorizationUrl(victim, '/auth/fake/login'))
      const seconds = Math.floor(Date.now() / 1000)
      const payload = { ...MALLORY, iss: fake.issuer, aud: fake.clientId, iat: seconds, exp: seconds + 600, nonce: attackersUrl.searchParams.get('nonce') }
      const idToken = await fake.signedIdToken(payload)
      fake.lies.set('/token', () => json(200, { access_token: 'the-access-token', token_type: 'Bearer', id_token: idToken }))

      const code = new URL(fake.consent(attackersUrl.href), BASE_URL).searchParams.getAll('code')
      await assertRefused(t, victim, changed(own, { code }), PROVIDER_ERROR, 'the nonce is of another sign-in')
      t.equal(await app.auth.findUser({ provider: 'fake', subject: 'mallory' }), null)
    })

    t.test('attack 32: HEAD starts nothing and uses nothing up, whether or not the application answers HEAD', async t => {
      for (const exposeHeadRoutes of [true, false]) {
        const { app, wire, fake, store } = await start(t, {}, { exposeHeadRoutes })
        t.match(await new Browser(app).send({ method: 'HEAD', url: '/auth/fake/login' }), { statusCode: 404, cookies: [] })
        if (store instanceof SlowSessionStore) t.equal(store.entries.size, 0)
        t.strictSame(fake.requests, [])

        const browser = new Browser(app)
        const callback = fake.consent(await authorizationUrl(browser, '/auth/fake/login?next=/here'))
        for (const url of ['/auth/fake/login', callback, callback, callback.replace('/fake/', '/other/'), '/auth/local/revoke']) {
          t.match(await browser.send({ method: 'HEAD', url }), { statusCode: url.includes('callback') ? 405 : 404, cookies: [] }, url)
        }
        t.strictSame(wire.tokenRequests, [])
        t.equal((await browser.get(callback)).headers.location, '/here')
        t.match(await principalIn(browser), { provider: 'fake' })
      }
    })

    t.test('attack 32: a prefetched page does not sign in and ends no sign-in under way', async t => {
      const { app, fake } = await start(t)
      const browser = new Browser(app)
      const callback = fake.consent(await authorizationUrl(browser, '/auth/fake/login?next=/here'))
      for (const purpose of ['prefetch', 'prefetch;prerender', 'prefetch;anonymous-client-ip']) {
        const { statusCode } = await browser.get('/auth/fake/login?next=/elsewhere', { 'sec-purpose': purpose })
        t.ok(statusCode === 302 || (statusCode >= 400 && statusCode < 500), `${purpose}: ${statusCode}`)
        t.equal(await principalIn(browser), null)
      }
      t.equal((await browser.get(callback)).headers.location, '/here')
    })

    t.test('attack 32: the last eight of many sign-ins that one session starts are under way', async t => {
      const starts = isThorough ? 1000 : 50
      const { app, fake, store } = await start(t, { rateLimit: false })
      const browser = new Browser(app)
      await authorizationUrl(browser, '/auth/fake/login')
      const cookies = new Map(browser.cookies)
      await Promise.all(Array.from({ length: starts - 10 }, () => authorizationUrl(new Browser(app, cookies), '/auth/fake/login')))
      const callbacks: string[] = []
      for (let tab = 0; tab < 9; tab++) callbacks.push(fake.consent(await authorizationUrl(browser, `/auth/fake/login?next=/${tab}`)))

      t.strictSame(browser.cookies, cookies, 'the session stays one')
      if (store instanceof SlowSessionStore) {
        t.equal(store.sessions.length, 1)
        const entries = Array.from(store.entries.values(), text => JSON.parse(text))
        const pending = entries.filter(({ pending }) => pending !== undefined)
        t.equal(pending.length, 8)
        t.equal(entries.length, 1 + 1 + 8, 'besides the session and the list of what it started')
        t.ok(pending.every(({ cookie }) => new Date(cookie.expires).getTime() <= Date.now() + TEN_MINUTES_MS), 'stores forget it after ten minutes')
      }
      const [oldest = '', ...latest] = callbacks
      await assertRefused(t, browser, oldest, INVALID_STATE, 'the ninth before the end')
      for (const [index, callback] of latest.entries()) t.equal((await browser.get(callback)).headers.location, `/${index + 1}`)
    })

    t.test('attack 32: a flood of starts without a cookie removes no sign-in of another user, and expires', async t => {
      const starts = isThorough ? 2000 : 100
      const { app, fake, store } = await start(t, { rateLimit: false })
      const [person, member] = [new Browser(app), new Browser(app)]
      await member.get(fake.consent(await authorizationUrl(member, '/auth/fake/login')))
      const callback = fake.consent(await authorizationUrl(person, '/auth/fake/login'))
      const asked = [...fake.requests]

      const answers = await Promise.all(Array.from({ length: starts }, () => app.inject('/auth/fake/login')))

      t.strictSame([...new Set(answers.map(({ statusCode }) => statusCode))], [302])
      t.strictSame(fake.requests, asked, 'the provider notices nothing')
      if (store instanceof SlowSessionStore) {
        const entries = [...store.entries.values()].map(text => JSON.parse(text))
        t.ok(entries.length <= 2 * (starts + 2) + 5, `${entries.length} entries: for each start a session and what is under way`)
        t.ok(entries.every(({ cookie }) => new Date(cookie.expires).getTime() > Date.now()), 'each says when it ends')
      }
      t.match(await principalIn(member), { provider: 'fake' })
      t.equal((await person.get(callback)).headers.location, '/')
    })
  })
}

t.test('attack 32: the default session store keeps the latest entries of a flood, and all signed-in users', async t => {
  const fake = await startFakeOpenIdProvider(t)
  const store = new MemoryAuthStore()
  const app = await startApp(t, { baseUrl: BASE_URL, providers: [fake.provider()], store })
  const [member, early, late] = [new Browser(app), new Browser(app), new Browser(app)]
  await member.get(fake.consent(await authorizationUrl(member, '/auth/fake/login')))
  const pushedOut = fake.consent(await authorizationUrl(early, '/auth/fake/login'))

  await flood(store)

  await assertRefused(t, early, pushedOut, INVALID_STATE, 'what was there first is gone: the memory is bounded')
  t.match(await principalIn(member), { provider: 'fake' })
  t.equal((await late.get(fake.consent(await authorizationUrl(late, '/auth/fake/login')))).headers.location, '/')
})

t.test('attack 32: a flood brings no session back that ended while a request of it was under way', async t => {
  const store = new MemoryAuthStore()
  const [reached, goesOn] = [deferred(), deferred()]
  // Over http:, since @fastify/session saves nothing of what an application writes when the cookie is for https: and the request is not.
  const app = await startApp(t, { baseUrl: 'http://app.example', local: localProvider(), store }, {}, app => {
    app.get('/slow', async request => {
      reached.resolve()
      await goesOn.promise
      Object.assign(request.session, { seen: true })
      return 'done'
    })
  })
  const member = new Browser(app)
  await member.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
  const thief = new Browser(app, member.cookies)
  const late = thief.get('/slow')
  await reached.promise
  await member.post('/auth/local/revoke')
  await flood(store)

  goesOn.resolve()
  t.equal((await late).statusCode, 200)
  t.equal(await principalIn(thief), null)
})

/** What 50,000 starts leave in a store, without the minutes that they take. */
async function flood ({ sessions, entries }: MemoryAuthStore): Promise<void> {
  const startedAt = Date.now()
  for (let start = 0; start < 50_000; start++) {
    await entries.put({ hash: `state ${start}`, kind: 'sign-in', owner: `session ${start}`, content: {}, startedAt }, 8)
    const anonymous = { user: null, data: null, userAgent: null, createdAt: startedAt, expiresAt: startedAt + TEN_MINUTES_MS }
    await sessions.insert({ idHash: `visitor ${start}`, ...anonymous }, null)
  }
}
