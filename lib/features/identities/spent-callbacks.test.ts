/** Callbacks whose sign-in is used, too old, unknown or refused: a reload, another tab, an answer that was lost. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import type { AuthPluginOptions } from '../../index.js'
import { Pages } from '../../pages.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { enrolAda, nextCode, startFactorApp } from '../../../test/helpers/factor-app.js'
import { type OpenIdProvider, startOpenIdProvider } from '../../../test/helpers/openid-provider.js'
import { leaveFor, linkAt } from '../../../test/helpers/own-provider.js'
import { type Kept, SHARED_SESSIONS } from '../../../test/helpers/session-stores.js'

const BASE_URL = 'https://app.example'
const HTML = { accept: 'text/html' }
const MINUTE_MS = 60_000

interface Setting {
  app: FastifyInstance
  idp: OpenIdProvider
  /** Starts a sign-in, and comes back from the provider: the path of the callback. */
  leave: (browser: Browser, login?: string) => Promise<string>
}

async function start (t: Test, { store, sessions }: Partial<Kept> = {}, options: AuthPluginOptions = {}): Promise<Setting> {
  const idp = await startOpenIdProvider(t, { redirectUris: [`${BASE_URL}/auth/dev/callback`] })
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    providers: [idp.provider()],
    local: localProvider(),
    store,
    session: { secret: SESSION_SECRET, store: sessions },
    ...options
  })
  const leave = async (browser: Browser, login = '/auth/dev/login?next=/welcome'): Promise<string> => {
    const { headers: { location = '' } } = await browser.get(login)
    const { pathname, search } = await idp.authorize(location)
    return pathname + search
  }
  return { app, idp, leave }
}

async function password (browser: Browser): Promise<void> {
  const answer = await browser.post('/auth/local/register', { email: 'grace@example.com', password: 'ships and bugs, 1947', name: 'Grace' })
  if (answer.statusCode !== 201) throw new Error(answer.body)
}

/** The page for a signed-in user: who they are, where they go on, and where they are led after the sign-out. */
function shownBy ({ statusCode, body }: LightMyRequestResponse): object {
  const text = (pattern: RegExp): string | undefined => pattern.exec(body)?.[1]?.replaceAll('&amp;', '&')
  return {
    statusCode,
    user: text(/You are signed in as <bdi translate="no">(.*?)<\/bdi>/),
    goOn: text(/<a class="button primary" data-part="link" href="(.*?)">Continue</),
    afterSignOut: text(/action="\/auth\/logout">[^]*name="next" value="(.*?)"[^]*Sign in as another user/),
    hasExpired: body.includes('has expired')
  }
}

for (const [kind, keep] of SHARED_SESSIONS) {
  t.test(`the rules hold with ${kind}`, async t => {
    t.test('a callback that is sent again in the session that came by it leads to its page, for as long as the session lasts', async t => {
      const { app, idp, leave } = await start(t, await keep(t))
      const browser = new Browser(app)
      const callback = await leave(browser)
      t.equal((await browser.get(callback, HTML)).headers.location, '/welcome')
      const [before, cookies] = [await principalIn(browser), [...browser.cookies]]
      const asked = idp.requests.length

      for (const minutes of [0, 2, 60]) {
        if (minutes > 0) advanceClock(t, minutes * MINUTE_MS)
        const again = await browser.get(callback, HTML)
        t.match([again.statusCode, again.headers.location], [302, '/welcome'])
        t.equal((await browser.get(callback)).json().code, 'invalid_state', 'a script gets the code as ever')
      }

      t.strictSame([await principalIn(browser), [...browser.cookies]], [before, cookies])
      t.equal(idp.requests.length, asked, 'the provider is not asked again')
    })

    t.test('a callback of a visitor whose first answer was lost starts again after the minute, with the same page after it', async t => {
      const { app, leave } = await start(t, await keep(t), { loginPage: '/login' })
      const browser = new Browser(app)
      const callback = await leave(browser)
      const first = new Browser(app, browser.cookies)
      t.equal((await first.get(callback, HTML)).headers.location, '/welcome')
      advanceClock(t, MINUTE_MS + 1)

      t.equal((await browser.get(callback, HTML)).headers.location, '/login?next=%2Fwelcome&error=invalid_state')
      t.equal(await principalIn(browser), null)
      t.match(await principalIn(first), { provider: 'dev' }, 'the first session is not touched')
    })

    t.test('a sign-in that took too long starts again, with the same page after it', async t => {
      const { app, leave } = await start(t, await keep(t), { loginPage: '/login' })
      const browser = new Browser(app)
      const callback = await leave(browser)
      advanceClock(t, 25 * MINUTE_MS)
      t.equal((await browser.get(callback, HTML)).headers.location, '/login?next=%2Fwelcome&error=invalid_state')
      t.equal(await principalIn(browser), null)
    })

    t.test('a tab that comes back as another user than the present one says who is signed in, and changes nothing', async t => {
      const { app, leave } = await start(t, await keep(t), { loginPage: '/login' })
      const browser = new Browser(app)
      const callback = await leave(browser)
      await password(browser)
      const [before, cookies] = [await principalIn(browser), browser.cookies.get('svc_session')]

      t.strictSame(shownBy(await browser.get(callback, HTML)), {
        statusCode: 400, user: 'Grace', goOn: '/welcome', afterSignOut: '/login?next=%2Fwelcome', hasExpired: false
      })

      t.strictSame([await principalIn(browser), browser.cookies.get('svc_session')], [before, cookies])
      t.equal(await app.auth.findUser({ email: 'ada@example.com' }), null)
    })
  })
}

t.test('a callback that this browser did not begin names no page after it, with or without a user', async t => {
  const { app, leave } = await start(t, {}, { pages: new Pages({ name: 'Shop' }) })
  const [victim, attacker] = [new Browser(app), new Browser(app)]
  const attackers = await leave(attacker, '/auth/dev/login?next=/attackers')
  const callbacks = [attackers, '/auth/dev/callback?code=c&state=guess&next=/attackers']

  for (const callback of callbacks) {
    t.equal((await victim.get(callback, HTML)).headers.location, '/auth/pages/sign-in?error=invalid_state')
  }
  await password(victim)
  for (const callback of callbacks) {
    t.match(shownBy(await victim.get(callback, HTML)), { user: 'Grace', goOn: '/', afterSignOut: '/auth/pages/sign-in' })
    t.equal((await victim.get(callback)).json().code, 'invalid_state')
  }
})

t.test('without a login page, a visitor gets one that starts again', async t => {
  const { app, leave } = await start(t)
  const browser = new Browser(app)
  const callback = await leave(browser)
  await new Browser(app, browser.cookies).get(callback)
  advanceClock(t, MINUTE_MS + 1)

  const { statusCode, body } = await browser.get(callback, HTML)

  t.equal(statusCode, 400)
  t.match(body, /<p class="error" data-part="error" role="alert" id="failure">This sign-in has expired\. Start again\./)
  t.match(body, /href="\/auth\/dev\/login\?next=%2Fwelcome">Continue with/)
})

t.test('a linking and a reauthentication that are spent say that they failed', async t => {
  const { app, idp } = await start(t, {}, { loginPage: '/login' })
  const browser = new Browser(app)
  await password(browser)
  for (const what of ['link', 'reauthenticate']) {
    const { url } = (await browser.post('/auth/dev/login', { [what]: 'true', next: '/account' })).json()
    const { pathname, search } = await idp.authorize(url)
    const outcomes = []
    for (let time = 0; time < 2; time++) {
      outcomes.push((await browser.get(pathname + search, HTML)).headers.location)
      advanceClock(t, MINUTE_MS + 1)
    }
    t.strictSame(outcomes, ['/account', '/login?error=invalid_state'], what)
  }
})

t.test('a sign-in that waits for a second factor leads to that step again, and then to its page', async t => {
  const setting = await startFactorApp(t, {}, { pages: new Pages({ name: 'Shop' }) })
  const { app } = setting
  const { secret } = await enrolAda(t, setting)
  await linkAt(setting.browser, 'a', { subject: 'ada-at-a' })
  const browser = new Browser(app)
  const callback = await leaveFor(browser, '/auth/a/login?next=/in', { subject: 'ada-at-a' }, {})
  const step = (await browser.get(callback, HTML)).headers.location

  t.match(step, '/auth/local/second-factor?next=%2Fin')
  t.equal((await browser.get(callback, HTML)).headers.location, step)
  t.equal((await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })).statusCode, 200)
  t.equal((await browser.get(callback, HTML)).headers.location, '/in')
})
