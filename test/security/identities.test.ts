import t, { type Test } from 'tap'
import { type AuthPluginOptions, type AuthStore, type ExternalProvider, MemoryAuthStore, OidcProvider } from '../../lib/index.js'
import type { LinkingPolicy } from '../../lib/hooks.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, principalIn, startApp, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { FROM_OWN_PAGE, OwnProvider, callbackOf, leaveFor, linkAt, postLogin, signInAt } from '../helpers/own-provider.js'
import { SOME_SESSION_STORES, type SessionStores } from '../helpers/session-stores.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import { SOME_STORES } from '../helpers/stores.js'
import { some } from '../helpers/thorough.js'

const BASE_URL = 'https://app.example'
const ADDRESS = 'victim@example.com'
const ATTACKERS_PASSWORD = { email: ADDRESS, password: 'the attacker knows it' }
const VICTIM = { sub: 'victim-1', email: ADDRESS, email_verified: true, name: 'Vera' }
const ATTACKER = { subject: 'attacker-1', email: 'attacker@example.com' }

const JSON_CLIENT = { accept: 'application/json' }

/** An application with an OpenID provider `fake`, a provider `own`, passwords, and a registration form that hands claims out. */
async function start (t: Test, { sessions, ...options }: AuthPluginOptions & { sessions?: SessionStores } = {}) {
  const fake = await startFakeOpenIdProvider(t)
  const store = options.store ?? new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [fake.provider(), new OwnProvider('own')],
    local: localProvider({ registration: { roles: ['member'], emailVerified: true } }),
    session: { secret: SESSION_SECRET, store: sessions },
    rateLimit: false,
    ...options,
    store
  }, {}, app => {
    app.get('/guarded', { preHandler: app.auth.requireUser }, async request => request.principal)
    app.get('/by-token', { preHandler: app.auth.requireBearer }, async request => request.token)
  })
  const waysIn = async (userId: string) => (await store.links(userId)).map(({ provider, subject }) => `${provider} ${subject}`)
  return { app, store, fake, waysIn }
}

/** Goes to an OpenID provider and comes back as this person; answers as to a script. */
async function comeFrom (fake: FakeOpenIdProvider, browser: Browser, profile: Record<string, unknown>, provider = 'fake') {
  fake.profile = profile
  const { headers: { location = '' } } = await browser.get(`/auth/${provider}/login`)
  return browser.get(fake.consent(location), JSON_CLIENT)
}

/** The id of somebody who must be signed in. */
async function memberIn (browser: Browser): Promise<string> {
  const userId = await userIdIn(browser)
  if (userId === null) throw new Error('nobody is signed in')
  return userId
}

const POLICIES: Readonly<Record<string, LinkingPolicy>> = {
  'verified-email': 'verified-email',
  never: 'never',
  'a rule that always says yes': () => true,
  'a rule that always says no': () => false
}

for (const [storeName, createSessionStore] of SOME_SESSION_STORES) {
  t.test(`the rules hold with ${storeName}`, async t => {
    t.test('attack 19: an attacker who registers an address first shares no account with its owner', async t => {
      const preparations: Record<string, (attacker: Browser) => Promise<unknown>> = {
        'with a password': async attacker => attacker.post('/auth/local/register', ATTACKERS_PASSWORD),
        'in another spelling': async attacker => attacker.submit('/auth/local/register', { ...ATTACKERS_PASSWORD, email: ' Victim@EXAMPLE.com ' }),
        'as verified, by the word of the attacker': async attacker => attacker.submit('/auth/local/register', {
          ...ATTACKERS_PASSWORD,
          email_verified: 'on',
          role: 'member'
        }),
        'and linked an identity of the attacker': async attacker => {
          await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)
          await linkAt(attacker, 'own', ATTACKER)
        },
        'and linked one that claims the address': async attacker => {
          await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)
          await linkAt(attacker, 'own', { ...ATTACKER, email: ADDRESS, emailVerified: false })
        }
      }
      for (const [number, [policy, linking]] of Object.entries(POLICIES).entries()) {
        for (const [preparation, prepare] of some(Object.entries(preparations), 3, number)) {
          t.test(`${preparation}; linking: ${policy}`, async t => {
            const { app, store, fake, waysIn } = await start(t, { linking, sessions: createSessionStore() })
            const [attacker, victim] = [new Browser(app), new Browser(app)]
            await prepare(attacker)
            const attackersId = await memberIn(attacker)
            const before = [await waysIn(attackersId), await store.findUser({ userId: attackersId })]
            const linkUnderWay = await leaveFor(attacker, '/auth/own/login?link=true', { ...ATTACKER, subject: 'attacker-2' })

            for (const attempt of ['first', 'second']) {
              t.match(await comeFrom(fake, victim, VICTIM), { statusCode: 409, body: /account_exists/ }, attempt)
              t.equal(await principalIn(victim), null, attempt)
            }
            await attacker.get(linkUnderWay)

            t.strictSame(await store.findUser({ userId: attackersId }), before[1], 'nothing of the victim came to the attacker')
            t.equal(await store.findUser({ provider: 'fake', subject: VICTIM.sub }), null)
            const { statusCode } = await new Browser(app).post('/auth/local/login', ATTACKERS_PASSWORD)
            t.equal(statusCode, 200, 'the password opens the account of the attacker, which nobody else uses')
            t.notOk((await waysIn(attackersId)).some(way => way.startsWith('fake')))
          })
        }
      }
    })

    t.test('attack 19: an existing owner shares the account with no user who claims the address', async t => {
      for (const [policy, linking] of Object.entries(POLICIES).filter(([, linking]) => typeof linking !== 'function')) {
        const { app, fake, waysIn } = await start(t, { linking, sessions: createSessionStore() })
        const [attacker, victim] = [new Browser(app), new Browser(app)]
        await comeFrom(fake, victim, VICTIM)
        const before = await principalIn(victim)

        t.match(await attacker.post('/auth/local/register', ATTACKERS_PASSWORD), { statusCode: 409, body: /exists/ }, policy)
        t.match(await attacker.post('/auth/local/login', ATTACKERS_PASSWORD), { statusCode: 401, body: /invalid/ }, policy)
        t.equal(
          (await signInAt(attacker, 'own', {
            subject: 'attacker-1',
            email: ADDRESS,
            emailVerified: false
          })).headers.location,
          '/account?error=account_exists',
          policy
        )

        t.equal(await principalIn(attacker), null, policy)
        t.strictSame(await principalIn(victim), before, policy)
        t.strictSame(await waysIn(await memberIn(victim)), ['fake victim-1'], policy)
      }
    })

    t.test('attack 20: the owner of an address signs in when the application makes room, and the squatter keeps and leaves nothing', async t => {
      const ways = { 'by its rule for linking': true, 'by deleting the squatter after the owner has complained': false }
      for (const [way, isByRule] of Object.entries(ways)) {
        t.test(`the owner gets room ${way}`, async t => {
          const setting = await start(t, {
            sessions: createSessionStore(),
            linking: async (existing, identity) => {
              if (isByRule && identity.emailVerified && !existing.emailVerified) await setting.app.auth.deleteUser(existing.userId)
              return identity.emailVerified
            }
          })
          const { app, store, fake, waysIn } = setting
          const [attacker, victim] = [new Browser(app), new Browser(app)]
          await attacker.submit('/auth/local/register', { ...ATTACKERS_PASSWORD, role: 'member' })
          const squatterId = await memberIn(attacker)
          await linkAt(attacker, 'own', ATTACKER)
          await app.auth.grant(squatterId, { plan: 'gold' })
          const { token } = (await attacker.post('/auth/local/token')).json()
          const bearer = { authorization: `Bearer ${token}` }
          t.equal((await attacker.get('/by-token', bearer)).json().sub, squatterId)
          const linkUnderWay = await leaveFor(attacker, '/auth/own/login?link=true', { ...ATTACKER, subject: 'attacker-2' })
          const [looking, asking] = [new Browser(app, attacker.cookies), new Browser(app, attacker.cookies)]

          if (!isByRule) {
            t.equal((await comeFrom(fake, victim, VICTIM)).statusCode, 409)
            await app.auth.deleteUser((await app.auth.findUser({ email: ADDRESS }))?.userId ?? '')
          }
          t.match(await comeFrom(fake, victim, VICTIM), { statusCode: 302, headers: { location: '/' } })

          const victimsId = await memberIn(victim)
          t.not(victimsId, squatterId)
          t.strictSame(await waysIn(victimsId), ['fake victim-1'])
          t.strictSame((await store.findUser({ userId: victimsId }))?.claims, {}, 'no grant is inherited')
          t.match(await store.findUser({ email: ADDRESS }), { userId: victimsId, emailVerified: true })

          t.match(await attacker.get(linkUnderWay, JSON_CLIENT), { statusCode: 401, body: /unauthenticated/ })
          t.equal((await asking.post('/auth/local/token')).statusCode, 401)
          t.equal((await looking.get('/guarded')).statusCode, 401)
          for (const jar of [attacker, asking, looking]) t.equal(await principalIn(jar), null, 'the session is over, in every copy of its cookie')
          t.equal((await attacker.get('/by-token', bearer)).statusCode, 401)
          t.match(await attacker.post('/auth/local/verify-token', { token }), { statusCode: 401, body: /invalid_token/ })
          t.equal((await attacker.post('/auth/local/login', ATTACKERS_PASSWORD)).statusCode, 401)
          t.equal((await attacker.post('/auth/local/register', ATTACKERS_PASSWORD)).statusCode, 409)
          const again = new Browser(app)
          await signInAt(again, 'own', ATTACKER)
          t.not(await memberIn(again), victimsId)
          t.notOk('plan' in ((await principalIn(again))?.claims ?? {}))
          t.strictSame(await waysIn(victimsId), ['fake victim-1'])
        })
      }
    })

    t.test('attack 175: no link and no redirect starts a linking, whatever page it is on: a form of the application does', async t => {
      const ways: Record<string, Record<string, string>> = {
        'an image elsewhere': { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
        'an image that a user posted here': {
          'sec-fetch-site': 'same-origin',
          'sec-fetch-mode': 'no-cors',
          'sec-fetch-dest': 'image',
          referer: `${BASE_URL}/forum`
        },
        'a link elsewhere': { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-user': '?1' },
        'a redirect from elsewhere, of a user who came from here': { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', referer: `${BASE_URL}/` },
        'a page of a sibling': { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
        'a link in a mail': { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
        'a frame': { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
        'a script of the page': { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
        'a page that is loaded ahead': { ...FROM_OWN_PAGE, 'sec-purpose': 'prefetch' },
        'a page that is shown ahead': { ...FROM_OWN_PAGE, 'sec-purpose': 'prefetch;prerender' },
        'the address bar, of a user who came from here': { 'sec-fetch-site': 'none', referer: `${BASE_URL}/` },
        'an odd Sec-Fetch-Site': { 'sec-fetch-site': 'same-origin, cross-site', referer: `${BASE_URL}/` },
        'an old browser, from nowhere': {},
        'an old browser, from elsewhere': { referer: 'https://evil.example/' },
        'an old browser, from a host that begins alike': { referer: 'https://app.example.evil.example/' },
        'an old browser, from a user info that looks alike': { referer: 'https://app.example@evil.example/' },
        'an old browser, from the http twin': { referer: 'http://app.example/' },
        'an old browser, from another port': { referer: 'https://app.example:8443/' },
        'an old browser, from a sibling': { referer: 'https://www.app.example/' },
        'an image in an old browser': { referer: `${BASE_URL}/forum`, accept: 'image/avif,image/webp,*/*;q=0.8' }
      }
      const sessions = createSessionStore()
      const { app, waysIn } = await start(t, { sessions })
      const browser = new Browser(app)
      await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
      const before = await principalIn(browser)

      for (const [way, headers] of Object.entries({ ...ways, 'an own page': FROM_OWN_PAGE })) {
        const shown = await browser.get('/auth/own/login?link=true&next=/account', { accept: 'text/html', ...headers })
        const { statusCode, headers: { location = '/' }, body } = shown
        if (statusCode === 200) t.match(body, /<p>[^\n]*Own[^\n]*ada@example.com[^\n]*<\/p>/, `${way}: a page names provider and account`)
        else t.match(statusCode === 302 ? location : String(statusCode), /^(403|\/([^/].*)?\?error=cross_origin)$/, way)
        const asked = await browser.get('/auth/own/login?link=true', { ...headers, accept: 'application/json' })
        t.ok([400, 403].includes(asked.statusCode), way)
      }
      const posts = [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' }, { origin: 'null' }]
      for (const headers of posts) t.equal((await postLogin(browser, '/auth/own/login?link=true', headers)).statusCode, 403, JSON.stringify(headers))
      t.equal((await browser.send({ method: 'HEAD', url: '/auth/own/login?link=true', headers: FROM_OWN_PAGE })).statusCode, 404)

      if (sessions instanceof SlowSessionStore) t.notOk([...sessions.entries.keys()].some(id => id.includes('pending')), 'nothing is under way')
      t.strictSame(await principalIn(browser), before)
      t.strictSame(await waysIn(await memberIn(browser)), ['local ada@example.com'])
      const page = await browser.submit('/auth/own/login?link=false', { link: 'true' }, FROM_OWN_PAGE)
      t.match(page, { statusCode: 200, body: /http-equiv="refresh" content="0; url=https:\/\/own.example/ }, 'a page that opens the provider')
      t.equal((await linkAt(browser, 'own', { subject: 'ada-1' })).headers.location, '/', 'a click does')
      t.strictSame(await waysIn(await memberIn(browser)), ['local ada@example.com', 'own ada-1'])
    })

    t.test('attack 175: another value of link, link in the query of a form, or a redirect of the plugin, links nothing', async t => {
      const { app, waysIn } = await start(t, { sessions: createSessionStore() })
      const ada = { email: 'ada@example.com', password: 'correct horse' }
      const browser = new Browser(app)
      await browser.post('/auth/local/register', ada)
      const userId = await memberIn(browser)

      const spellings = [
        'link=1', 'link=TRUE', 'link=True', 'link=yes', 'link=on', 'link=', 'link', 'link=true%20', 'link=true%00',
        'link=true&link=true', 'link=true&link=false', 'link=false&link=true'
      ]
      for (const spelling of spellings) {
        for (const headers of [FROM_OWN_PAGE, { 'sec-fetch-site': 'cross-site' }]) {
          t.match(await browser.get(`/auth/own/login?${spelling}`, { ...headers, ...JSON_CLIENT }), { statusCode: 400, body: /invalid_request/ }, spelling)
        }
      }
      for (const link of ['1', 'TRUE', 'yes', 'on', '', 'true ', ['true', 'true'], true, 1, null]) {
        t.equal((await browser.post('/auth/own/login', { link }, FROM_OWN_PAGE)).statusCode, 400, JSON.stringify(link))
      }
      const plain = new Browser(app, browser.cookies)
      const { url } = (await plain.post('/auth/own/login?link=true&reauthenticate=true', { next: '/' }, FROM_OWN_PAGE)).json()
      await plain.get(callbackOf(url, { subject: 'by the query of a form' }))
      t.not(await memberIn(plain), userId, 'it is a plain sign-in')
      for (const spelling of ['link=false', 'link[]=true', 'link[0]=true', 'Link=true', 'LINK=true', '%20link=true', 'link%00=true']) {
        const other = new Browser(app, browser.cookies)
        await other.get(await leaveFor(other, `/auth/own/login?${spelling}`, { subject: `by ${encodeURIComponent(spelling)}` }))
        t.not(await memberIn(other), userId, `${spelling} is a plain sign-in`)
        t.strictSame(await waysIn(userId), ['local ada@example.com'], spelling)
      }

      for (const target of [
        '/auth/own/login?link=true', '/auth/own/login?x=1&link=true', '/auth/own/login;link=true', '/AUTH/own/%6cogin/?%6Cink=true',
        '/auth/own/login?a=%0A&link=true', '/auth/own/login?a=%09&reauthenticate=true', '/auth/own/login?a=%250A&link=true',
        `${BASE_URL}/auth/own/login?link=true`
      ]) {
        const jar = new Browser(app)
        const led = await jar.submit('/auth/local/login', { ...ada, next: target })
        const there = led.headers.location ?? /content="0; url=([^"]+)"/.exec(led.body)?.[1]?.replaceAll('&#38;', '&').replaceAll('&#39;', "'")
        const { pathname, search } = new URL(target, BASE_URL)
        t.equal(there, pathname + search, `next at the login: ${target}`)
        const landing = await jar.get(pathname + search, { accept: 'text/html', 'sec-fetch-site': 'same-origin' })
        t.notOk(landing.headers.location?.startsWith('https://own.example'), `and it starts nothing: ${target}`)
      }
      t.strictSame(await waysIn(userId), ['local ada@example.com'])
    })

    t.test('attack 23: linking is finished by no user but the one who started it', async t => {
      const ADA = { email: 'ada@example.com', password: 'correct horse' }
      const BOB = { email: 'bob@example.com', password: 'battery staple' }
      type Setting = Awaited<ReturnType<typeof start>> & { browser: Browser, userId: string }

      /** What happens between the start and the end; who then comes back. */
      const turns: Record<string, [code: 'invalid_state' | 'unauthenticated', turn: (setting: Setting) => Promise<Browser>]> = {
        'the user signed out': ['invalid_state', async ({ browser }) => {
          await browser.post('/auth/local/revoke')
          return browser
        }],
        'the user signed out, and an old cookie comes back': ['invalid_state', async ({ app, browser }) => {
          const old = new Browser(app, browser.cookies)
          await browser.post('/auth/local/revoke')
          return old
        }],
        'the user signed out, and another user signed in': ['invalid_state', async ({ browser }) => {
          await browser.post('/auth/local/revoke')
          await browser.post('/auth/local/login', BOB)
          return browser
        }],
        'another user signed in over the session': ['invalid_state', async ({ browser }) => {
          await browser.post('/auth/local/login', BOB)
          return browser
        }],
        'another user came from a provider over the session': ['invalid_state', async ({ browser }) => {
          await signInAt(browser, 'own', { subject: 'carol' })
          return browser
        }],
        'the browser is anonymous': ['invalid_state', async ({ app }) => new Browser(app)],
        'the browser is that of another user': ['invalid_state', async ({ app }) => {
          const other = new Browser(app)
          await other.post('/auth/local/login', BOB)
          return other
        }],
        'the sign-in method of the session is gone': ['unauthenticated', async ({ app, browser, userId }) => {
          await linkAt(browser, 'fake-twin', { subject: 'ada-at-twin' })
          await app.auth.unlink(userId, 'local')
          return browser
        }],
        'the user is gone': ['unauthenticated', async ({ app, browser, userId }) => {
          await app.auth.deleteUser(userId)
          return browser
        }]
      }
      for (const [turnName, [code, turn]] of Object.entries(turns)) {
        t.test(`linking does not finish when ${turnName}`, async t => {
          const setting = await start(t, { sessions: createSessionStore(), providers: [new OwnProvider('own'), new OwnProvider('fake-twin')] })
          const { app, waysIn } = setting
          const [browser, bob] = [new Browser(app), new Browser(app)]
          await browser.post('/auth/local/register', ADA)
          await bob.post('/auth/local/register', BOB)
          const [userId, bobsId] = [await memberIn(browser), await memberIn(bob)]
          const callback = await leaveFor(browser, '/auth/own/login?link=true', { subject: 'mallory' })

          const finisher = await turn({ ...setting, browser, userId })
          const before = [await principalIn(finisher), await waysIn(userId), await waysIn(bobsId)]
          for (const attempt of [code, 'invalid_state']) {
            const answer = await finisher.get(callback, JSON_CLIENT)
            t.match({ statusCode: answer.statusCode, body: answer.json() }, { statusCode: attempt === 'invalid_state' ? 400 : 401, body: { code: attempt } })
          }

          t.strictSame([await principalIn(finisher), await waysIn(userId), await waysIn(bobsId)], before)
          t.equal(await app.auth.findUser({ provider: 'own', subject: 'mallory' }), null)
        })
      }
    })

    t.test('attack 23: an identity of another user is already_linked, and neither it nor the last link is removed', async t => {
      const { app, store, waysIn } = await start(t, { sessions: createSessionStore() })
      const [ada, carol] = [new Browser(app), new Browser(app)]
      await ada.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
      await signInAt(carol, 'own', { subject: 'carol', email: 'carol@example.com' })
      const [adasId, carolsId] = [await memberIn(ada), await memberIn(carol)]
      const everything = async () => [
        await principalIn(ada),
        await waysIn(adasId),
        await store.findUser({ userId: adasId }),
        await principalIn(carol),
        await waysIn(carolsId),
        await store.findUser({ userId: carolsId })
      ]
      const before = await everything()

      for (const email of ['carol@example.com', 'ada@example.com']) {
        const answer = await ada.get(await leaveFor(ada, '/auth/own/login?link=true', { subject: 'carol', email }), JSON_CLIENT)
        t.match({ statusCode: answer.statusCode, body: answer.json() }, { statusCode: 409, body: { code: 'already_linked' } })
      }
      t.strictSame(await everything(), before)

      await app.auth.unlink(adasId, 'own')
      for (const [userId, provider] of [[adasId, 'local'], [carolsId, 'own']] as const) {
        await t.rejects(
          app.auth.unlink(userId, provider),
          { code: 'last_link' }
        )
      }
      await t.rejects(app.auth.unlink('00000000-0000-4000-8000-000000000000', 'own'), { code: 'unknown_user' })
      t.strictSame(await everything(), before)

      await linkAt(ada, 'own', { subject: 'ada-1' })
      const attempts = await Promise.allSettled([app.auth.unlink(adasId, 'own'), app.auth.unlink(adasId, 'local')])
      t.strictSame(attempts.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'of two ways in one stays, also when both are taken away at once')
      t.equal((await waysIn(adasId)).length, 1)
    })

    t.test('attack 23: a link that was removed does not come back with its callback', async t => {
      const { app, waysIn } = await start(t, { sessions: createSessionStore() })
      const browser = new Browser(app)
      await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
      const userId = await memberIn(browser)
      const callback = await leaveFor(browser, '/auth/own/login?link=true', { subject: 'ada-1' })
      await browser.get(callback)
      t.strictSame(await waysIn(userId), ['local ada@example.com', 'own ada-1'])

      await app.auth.unlink(userId, 'own')
      t.equal((await browser.get(callback, JSON_CLIENT)).headers.location, '/', 'the very same request is told what it did')
      t.match(await browser.get(`${callback}&again=true`, JSON_CLIENT), { statusCode: 400, body: /invalid_state/ })
      t.strictSame(await waysIn(userId), ['local ada@example.com'])
    })
  })
}

for (const [storeName, createStore] of Object.entries(SOME_STORES)) {
  t.test(`users in ${storeName}`, async t => {
    /** A user who came from `fake`, with a grant. */
    async function withAda (t: Test, options: { store: AuthStore, linking?: LinkingPolicy }) {
      const setting = await start(t, options)
      const browser = new Browser(setting.app)
      await comeFrom(setting.fake, browser, { sub: '1', email: 'ada@example.com', email_verified: true })
      const userId = await memberIn(browser)
      await setting.app.auth.grant(userId, { role: 'admin' })
      return { ...setting, browser, userId }
    }

    t.test('attack 21: another subject with the address of a user is not that user', async t => {
      for (const [policy, linking] of Object.entries(POLICIES)) {
        const { app, store, fake, userId, waysIn } = await withAda(t, { store: await createStore(t), linking })
        const before = await store.findUser({ userId })
        for (const email of ['ada@example.com', 'ADA@Example.com', ' ada@example.com']) {
          const heir = new Browser(app)
          t.match(await comeFrom(fake, heir, { sub: '2', email, email_verified: true }), { statusCode: 409, body: /account_exists/ }, `${policy}, ${email}`)
          t.equal(await principalIn(heir), null)
        }
        t.strictSame(await waysIn(userId), ['fake 1'])
        t.strictSame(await store.findUser({ userId }), before)
        t.equal(await store.findUser({ provider: 'fake', subject: '2' }), null)
      }
    })

    t.test('attack 21: a user whose address becomes that of another user is neither merged with them nor takes the address', async t => {
      const others: Record<string, (browser: Browser) => Promise<unknown>> = {
        'who registered': async browser => browser.post('/auth/local/register', { email: 'bob@example.com', password: 'battery staple' }),
        'for whom another provider vouches': async browser => signInAt(browser, 'own', { subject: 'bob', email: 'bob@example.com' })
      }
      for (const [who, come] of Object.entries(others)) {
        const { app, store, fake, userId } = await withAda(t, { store: await createStore(t) })
        const bob = new Browser(app)
        await come(bob)
        const bobsId = await memberIn(bob)
        const before = [(await store.findUser({ userId }))?.email, await store.findUser({ userId: bobsId })]

        for (const email of ['bob@example.com', 'BOB@example.com']) {
          const again = new Browser(app)
          t.match(await comeFrom(fake, again, { sub: '1', email, email_verified: true }), { statusCode: 302 }, who)
          t.equal(await userIdIn(again), userId, `${who}: he stays who he is`)
        }

        t.strictSame([(await store.findUser({ userId }))?.email, await store.findUser({ userId: bobsId })], before, who)
        t.equal((await store.findUser({ email: 'bob@example.com' }))?.userId, bobsId, who)
        const bobAgain = new Browser(app)
        await come(bobAgain)
        await bobAgain.post('/auth/local/login', { email: 'bob@example.com', password: 'battery staple' })
        t.equal(await userIdIn(bobAgain), bobsId, who)
      }
    })

    t.test('attack 21: a user with an address that a user has given up, or a user who is gone, inherits nothing', async t => {
      const { app, store, fake, userId } = await withAda(t, { store: await createStore(t) })
      await comeFrom(fake, new Browser(app), { sub: '1', email: 'ada@new.example', email_verified: true })
      t.match(await store.findUser({ userId }), { email: 'ada@new.example', emailVerified: true })

      const heir = new Browser(app)
      await comeFrom(fake, heir, { sub: '2', email: 'ada@example.com', email_verified: true })
      t.not(await memberIn(heir), userId)
      t.notOk('role' in ((await principalIn(heir))?.claims ?? {}))

      await app.auth.deleteUser(userId)
      const other = new Browser(app)
      await comeFrom(fake, other, { sub: '3', email: 'ada@new.example', email_verified: true })
      t.notOk([userId, await memberIn(heir)].includes(await memberIn(other)))
      t.notOk('role' in ((await principalIn(other))?.claims ?? {}))
    })

    t.test('attack 24: subjects that differ in any byte are different users, at each of two providers', async t => {
      const subjects = [
        '1', '01', '1.0', '1e0', ' 1', '1 ', 'a', 'A', 'a:b', 'a/b', 'a%2Fb', 'a\\b', '["fake","1"]', 'fake:1', '1-1',
        '-11', '-1-1', 'local', 'null', 'undefined', '__proto__', 'constructor', 'toString',
        'caf\u00e9', 'cafe\u0301', '\u017f', 's', '\ufb00', 'ff', '\u00df', 'ss', '\u0130', 'i', 'I', '\u0131',
        '\uff11', '\u0661', 'a\u200b', 'a\u00ad', 'a\n', 'a\r\n', '%', '_', "' OR 1=1--", '"', '\u{1f600}', '\ufeff1',
        `${'x'.repeat(254)}1`, `${'x'.repeat(254)}2`
      ]
      const twin = await startFakeOpenIdProvider(t)
      const fake = await startFakeOpenIdProvider(t)
      const { app } = await start(t, { store: await createStore(t), providers: [fake.provider(), twin.provider({ name: 'fake-1' })] })
      const local = new Browser(app)
      await local.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
      const localId = await memberIn(local)
      const users = new Map([[localId, 'the local user']])

      for (const subject of [...subjects, 'ada@example.com', localId]) {
        for (const [provider, idp] of [['fake', fake], ['fake-1', twin]] as const) {
          const who = `${JSON.stringify(subject)} at ${provider}`
          const [browser, again] = [new Browser(app), new Browser(app)]
          await comeFrom(idp, browser, { sub: subject }, provider)
          const userId = await memberIn(browser)
          t.notOk(users.has(userId), `${who} is not ${users.get(userId)}`)
          users.set(userId, who)
          await comeFrom(idp, again, { sub: subject }, provider)
          t.equal(await userIdIn(again), userId, `${who} is the same one the next time`)
          t.equal((await principalIn(again))?.claims.sub, subject)
        }
      }
    })

    t.test('attack 24: a subject that a store cannot keep is refused', async t => {
      const { app, fake } = await start(t, { store: await createStore(t) })
      const browser = new Browser(app)
      for (const sub of ['\0', '1\0', '\u00001', '\ud800', 'x'.repeat(256), '', undefined, null, 1, 0, true, ['1'], { sub: '1' }]) {
        const answer = await comeFrom(fake, browser, { sub, email: 'eve@example.com', email_verified: true })
        t.match({ statusCode: answer.statusCode, body: answer.json() }, { statusCode: 502, body: { code: 'provider_error' } }, JSON.stringify(sub))
        t.equal(await principalIn(browser), null, JSON.stringify(sub))
      }
      t.equal(await app.auth.findUser({ email: 'eve@example.com' }), null)
    })
  })
}

t.test('attack 25: a provider name that is not a URL segment, or has a meaning, is refused at register', async t => {
  const client = { clientId: 'the-app', clientSecret: 'the client secret of the tests', discoveryUrl: 'https://id.example/.well-known/openid-configuration' }
  const own = (name: unknown): ExternalProvider => Object.assign(new OwnProvider('own'), { name })
  const names = [
    'local', 'login', 'callback', '..', '.', 'a/b', '/', '\\', ':x', '*', 'a?b', 'a#b', '%6cogin', '__proto__',
    'constructor', 'prototype', 'A B', 'A', 'Google', 'a_b', 'a.b',
    '', ' ', 'a ', ' a', 'a\n', 'a\0', '-a', 'a-', 'a--b', 'g\u043e\u043egle', 'caf\u00e9', 'a\u200b', 'a'.repeat(64)
  ]
  for (const name of names) {
    t.throws(
      () => new OidcProvider({ ...client, name }),
      { name: 'OptionsError', code: 'invalid_options', message: /^name of a provider/ },
      `a class: ${JSON.stringify(name)}`
    )
  }
  for (const name of [...names, 1, null, undefined, ['a'], { toString: () => 'a' }, Symbol.iterator]) {
    await t.rejects(
      startApp(t, { baseUrl: BASE_URL, providers: [own(name)] }),
      { name: 'OptionsError', code: 'invalid_options', message: /^name of a provider/ },
      `one of the application's own: ${String(typeof name === 'object' ? JSON.stringify(name) : name)}`
    )
  }
  for (const providers of [[own('a'), own('a')], [own('a'), own('b'), new OidcProvider({ ...client, name: 'a' })]]) {
    await t.rejects(startApp(t, { baseUrl: BASE_URL, providers }), {
      name: 'OptionsError',
      code: 'invalid_options',
      message: /^providers must have different names.*"a"/
    })
  }
  t.strictSame(
    (await startApp(t, { baseUrl: BASE_URL, providers: ['a', 'b-1', '0', 'a'.repeat(63)].map(own) })).authProviders,
    ['a', 'b-1', '0', 'a'.repeat(63)]
  )
})
