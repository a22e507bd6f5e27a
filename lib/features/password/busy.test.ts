import { once } from 'node:events'
import { Agent, request } from 'node:http'
import t, { type Test } from 'tap'
import { AuthError, MemoryAuthStore } from '../../index.js'
import { hashing } from './hashing.js'
import { SESSION_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { deferred } from '../../../test/helpers/deferred.js'
import { CAPACITY } from '../../../test/helpers/hashing.js'
import { ADA as MAIL_ADA, registerAt, startMailApp, confirmAddress } from '../../../test/helpers/mail-app.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const ADDRESS = '192.0.2.1'

/** A hash takes milliseconds: the crowd is there for some time, and not for long. */
const COST = { memoryCost: 8192, timeCost: 1, parallelism: 1 }

/** An application in which Ada has an account, and how often its store was asked for a password. */
async function start (t: Test) {
  const store = new MemoryAuthStore()
  const wasLogged = deferred()
  const stream = {
    write (line: string) {
      if (line.includes('closed the connection')) wasLogged.resolve()
    }
  }
  const app = await startApp(t, { local: localProvider(), store, session: { secret: SESSION_SECRET }, rateLimit: false }, { logger: { level: 'info', stream } })
  const send = async (route: string, { from = ADDRESS, body = ADA }: { from?: string, body?: object | string } = {}) =>
    app.inject({
      method: 'POST',
      url: `/auth/local/${route}`,
      remoteAddress: from,
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      payload: body
    })
  t.equal((await send('register')).statusCode, 201)
  return { app, send, wasLogged: wasLogged.promise, lookUps: t.capture(store, 'findCredential', store.findCredential) }
}

/** Passwords of one address that run or wait. */
function crowd (size: number, address = ADDRESS) {
  let isOver = false
  const hashes = Array.from({ length: size }, async () => hashing.hash({ password: 'of another user', cost: COST }, { address }).catch(() => {}))
  const over = Promise.all(hashes).then(() => { isOver = true })
  return { over, isOver: () => isOver }
}

/** Makes the queue as full as it can be, without the time that it takes. */
function fill (t: Test): void {
  t.intercept(hashing, 'refusalFor', { value: () => new AuthError('busy', { retryAfter: 3 }) })
}

t.test('attack 42: while no place is left, logins and registrations are refused before their body is read and the store is asked', async t => {
  const { send, lookUps } = await start(t)
  fill(t)

  for (const route of ['login', 'register']) {
    const response = await send(route, { body: 'not JSON' })
    t.strictSame([response.statusCode, response.json().code, response.headers['retry-after']], [503, 'busy', '3'], route)
  }
  t.strictSame(lookUps(), [])
})

t.test('a link that confirms an address is refused with a password alone, while no place is left', async t => {
  const made = await startMailApp(t)
  const token = await registerAt(made)
  const visitor = new Browser(made.app)
  fill(t)

  const refused = await visitor.post('/auth/local/verify-email', { token, password: MAIL_ADA.password })
  t.strictSame([refused.statusCode, refused.json().code], [503, 'busy'])
  t.equal((await visitor.post('/auth/local/verify-email', { token })).json().code, 'unauthenticated')
  t.equal((await confirmAddress(made.browser, token)).statusCode, 204, 'the signed-in user needs no hash')
})

t.test('refusals wait a second, so that clients do not try again at once; of more than 1024 those on top do not wait', async t => {
  const { send } = await start(t)
  fill(t)
  const order: number[] = []

  const statuses = await Promise.all(Array.from({ length: 1030 }, async (_, index) => {
    const { statusCode } = await send('login')
    order.push(index)
    return statusCode
  }))

  t.strictSame(new Set(statuses), new Set([503]))
  t.strictSame(order.slice(0, 6).toSorted(), [1024, 1025, 1026, 1027, 1028, 1029])
})

t.test('attack 42: while one address takes all places, a login from another has its turn', async t => {
  const { send } = await start(t)
  const { over, isOver } = crowd(CAPACITY)
  await new Promise(resolve => setImmediate(resolve))

  t.equal((await send('login', { from: '192.0.2.2' })).statusCode, 200)
  t.notOk(isOver())
  await over
})

t.test('a password does not wait when its client has closed the connection', async t => {
  const { app, wasLogged } = await start(t)
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  const { over, isOver } = crowd(CAPACITY - 10, '127.0.0.1')
  await new Promise(resolve => setImmediate(resolve))
  const verifying = deferred()
  const { verify } = hashing
  t.capture(hashing, 'verify', async (...args: Parameters<typeof verify>) => {
    setImmediate(verifying.resolve)
    return verify(...args)
  })
  const client = request(`${origin}/auth/local/login`, { agent: new Agent(), method: 'POST', headers: { 'content-type': 'application/json' } })
  const failed = once(client, 'error')
  client.end(JSON.stringify(ADA))
  await verifying.promise

  client.destroy(new Error('the user left'))

  await failed
  await wasLogged
  t.notOk(isOver(), 'the passwords in front of it are still waiting')
  await over
})
