import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import t from 'tap'
import { Accounts } from '../../accounts/accounts.js'
import { type AuthPluginOptions, AuthError, MemoryAuthStore } from '../../index.js'
import { SESSION_SECRET, localProvider, principalIn, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { deferred } from '../../../test/helpers/deferred.js'
import { OwnProvider, signInAt } from '../../../test/helpers/own-provider.js'
import { SlowSessionStore } from '../../../test/helpers/slow-session-store.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const DOWN = new Error('the session store is down')

/** An application with passwords and a provider, and a browser. */
async function start (sessions: SessionStore, options: AuthPluginOptions = {}) {
  const store = new MemoryAuthStore()
  const app = await startApp(t, {
    baseUrl: 'https://app.example',
    local: localProvider(),
    providers: [new OwnProvider('a')],
    store,
    session: { secret: SESSION_SECRET, store: sessions },
    ...options
  })
  return { app, store, browser: new Browser(app) }
}

/** A session store that takes sessions only where `write` lets it, and keeps all else that the library writes. */
class GuardedSessionStore extends SlowSessionStore {
  write = async (): Promise<void> => {}

  override set (id: string, session: Session, callback: (error?: unknown) => void): void {
    if (id.startsWith('svc-auth-')) super.set(id, session, callback)
    else this.write().then(() => { super.set(id, session, callback) }, callback)
  }
}

t.test('while sessions cannot be written a registration is unavailable, and the next one succeeds', async t => {
  const sessions = new GuardedSessionStore()
  const { store, browser } = await start(sessions)
  sessions.write = async () => { throw DOWN }

  const failed = await browser.post('/auth/local/register', ADA)
  t.strictSame([failed.statusCode, failed.json().code], [503, 'unavailable'])
  t.equal(await store.findUser({ email: ADA.email }), null)

  sessions.write = async () => {}
  t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
  t.match(await principalIn(browser), { claims: { email: ADA.email } })
  t.notOk('isNew' in (await store.findUser({ email: ADA.email }) ?? {}))
})

t.test('a user that the hook admitted is not registered when the session cannot be written', async t => {
  const sessions = new GuardedSessionStore()
  const told: boolean[] = []
  const { store, browser } = await start(sessions, { onSignIn: ({ created }) => { told.push(created) } })
  sessions.write = async () => { throw DOWN }

  t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 503)
  t.equal(await store.findUser({ email: ADA.email }), null)

  sessions.write = async () => {}
  t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
  t.strictSame(told, [true, true])
})

t.test('a first sign-in at a provider leaves no user behind when the session cannot be written', async t => {
  const sessions = new GuardedSessionStore()
  const { store, browser } = await start(sessions)
  const user = async () => store.findUser({ provider: 'a', subject: '1' })
  let wasMade = false
  sessions.write = async () => {
    if (await user() === null) return
    wasMade = true
    throw DOWN
  }

  await signInAt(browser, 'a', { subject: '1' })

  t.ok(wasMade)
  t.equal(await user(), null)
})

t.test('a user who signed in while their registration was under way stays, although the registration fails', async t => {
  const sessions = new GuardedSessionStore()
  const { app, store, browser } = await start(sessions)
  const [registering, signedIn] = [deferred(), deferred()]
  sessions.write = async () => {
    sessions.write = async () => {}
    registering.resolve()
    await signedIn.promise
    throw DOWN
  }

  const registration = browser.post('/auth/local/register', ADA)
  await registering.promise
  const other = new Browser(app)
  t.equal((await other.post('/auth/local/login', ADA)).statusCode, 200)
  signedIn.resolve()

  t.equal((await registration).statusCode, 503)
  t.match(await store.findUser({ email: ADA.email }), { email: ADA.email })
  t.match(await principalIn(other), { claims: { email: ADA.email } })
})

t.test('a login that fails because sessions cannot be written deletes no user', async t => {
  const sessions = new GuardedSessionStore()
  const { store, browser } = await start(sessions)
  await browser.post('/auth/local/register', ADA)
  sessions.write = async () => { throw DOWN }

  t.equal((await new Browser(browser.app).post('/auth/local/login', ADA)).statusCode, 503)
  t.match(await store.findUser({ email: ADA.email }), { email: ADA.email })
})

t.test('when the user store fails after the session was written, the registration signs no user in', async t => {
  const { store, browser } = await start(new SlowSessionStore())
  t.intercept(Accounts.prototype, 'admitUser', { value: async () => { throw new AuthError('unavailable') } })

  const response = await browser.post('/auth/local/register', ADA)

  t.strictSame([response.statusCode, response.json().code, response.headers['set-cookie']], [503, 'unavailable', undefined])
  t.equal(await principalIn(browser), null)
  t.equal(await store.findUser({ email: ADA.email }), null)
})
