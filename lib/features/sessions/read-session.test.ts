import t from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import { Passkeys } from '../../passkeys.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { OwnProvider } from '../../../test/helpers/own-provider.js'
import { SHARED_SESSIONS } from '../../../test/helpers/session-stores.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const VISITOR = { principal: null, authentication: null }

t.test('a visitor learns how users sign in, and gets no cookie', async t => {
  const nothing = {
    password: false,
    registration: false,
    passwordReset: false,
    mail: false,
    passkeys: false,
    remember: false,
    providers: [],
    impersonating: false
  }
  const sendMail = (): void => {}
  const baseUrl = 'https://app.example'
  const applications: Array<[AuthPluginOptions, object]> = [
    [{}, {}],
    [{ local: localProvider() }, { password: true, registration: true }],
    [{ baseUrl, local: localProvider({ sendMail, registration: false }) }, { password: true, passwordReset: true }],
    [{ baseUrl, local: localProvider({ sendMail, accountRoutes: { forgotPassword: false } }) }, { password: true, registration: true }],
    [{ baseUrl, local: localProvider({ sendMail, signInByMail: true, password: false }) }, { mail: true }],
    [
      { baseUrl, dataSecret: LOCAL_SECRET, passkeys: new Passkeys({ name: 'Shop' }), providers: [new OwnProvider('own'), new OwnProvider('other')] },
      { passkeys: true, providers: ['own', 'other'] }
    ]
  ]
  for (const [options, offers] of applications) {
    const app = await startApp(t, options)
    for (const accept of ['application/json', 'text/html', '*/*']) {
      const { statusCode, headers, body } = await app.inject({ url: '/auth/session', headers: { accept } })

      t.strictSame([statusCode, JSON.parse(body)], [200, { ...VISITOR, offers: { ...nothing, ...offers } }])
      t.match([headers['cache-control'], headers['set-cookie']], ['no-store, no-transform', undefined])
    }
  }
})

for (const [name, keep] of SHARED_SESSIONS) {
  t.test(`a front end learns who is signed in, and when they no longer are (${name})`, async t => {
    const { store, sessions } = await keep(t)
    const app = await startApp(t, { local: localProvider(), store, session: { secret: SESSION_SECRET, store: sessions } })
    const browser = new Browser(app)
    const before = Date.now()
    const principal = (await browser.post('/auth/local/register', ADA)).json()
    const seen = async (): Promise<object> => (await browser.get('/auth/session')).json()

    const { authentication: { at, ...authentication }, ...session } = Object(await seen())
    t.match(session, { principal, offers: { password: true } })
    t.strictSame(authentication, { methods: [{ method: 'password', at }], secondFactor: false })
    t.ok(Date.parse(at) >= before && Date.parse(at) <= Date.now())

    await app.auth.block(principal.userId)
    t.match(await seen(), VISITOR)
  })
}

t.test('scripts get the status of a failure, and no redirect, whatever they accept', async t => {
  const store = new MemoryAuthStore()
  const browser = new Browser(await startApp(t, { local: localProvider(), store, loginPage: '/login' }))
  await browser.post('/auth/local/register', ADA)
  store.status = async () => { throw new Error('the database is away') }

  const answer = await browser.get('/auth/session', { accept: 'text/html', 'sec-fetch-mode': 'navigate' })
  t.match([answer.statusCode, answer.json()], [503, { code: 'unavailable' }])

  for (const method of ['HEAD', 'POST'] as const) {
    t.equal((await browser.app.inject({ method, url: '/auth/session' })).statusCode, 404)
  }
})
