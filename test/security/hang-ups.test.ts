/** Attack 125: clients that close their connection before they are answered, and the end of the application. */
import { type ClientRequest, request as httpRequest } from 'node:http'
import { type ClientHttp2Session, connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, {
  type AccountQuery, MemoryAuthStore, type Rule, type SendMail, type StoreCapabilities, type UniqueKeys
} from '../../lib/index.js'
import { mailbox } from '../../lib/testing.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import type { Browser } from '../helpers/browser.js'
import { type Deferred, deferred } from '../helpers/deferred.js'
import { ADA, BASE_URL, NEW_PASSWORD, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { MemoryAttempts } from '../helpers/memory-attempts.js'

const CHANGE_PASSWORD = '/auth/local/change-password'
const FORGOT = '/auth/local/forgot-password'

/** Holds a change of an account, such as a new password after its hash. */
class HoldingStore extends MemoryAuthStore {
  readonly reached = deferred()
  readonly held = deferred()
  holds = false

  override async change<T> (find: AccountQuery, wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
    if (this.holds) {
      this.reached.resolve()
      await this.held.promise
    }
    return super.change(find, wanted, rule)
  }
}

/** Sends a request with the cookies of a browser, and returns what closes its connection. */
type Leave = () => void
type Send = (t: Test, port: number, headers: Record<string, string>, body: string) => Leave

const OVER: Record<string, { server: FastifyServerOptions, send: Send }> = {
  'HTTP/1.1': {
    server: {},
    send (_t, port, headers, body) {
      const request: ClientRequest = httpRequest({ host: '127.0.0.1', port, path: CHANGE_PASSWORD, method: 'POST', headers })
      request.on('error', () => {}).end(body)
      return () => { request.destroy() }
    }
  },
  'HTTP/2': {
    server: { http2: true } as FastifyServerOptions,
    send (t, port, headers, body) {
      const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`)
      t.teardown(() => { session.destroy() })
      session.on('error', () => {}).request({ ':method': 'POST', ':path': CHANGE_PASSWORD, ...headers }).on('error', () => {}).end(body)
      return () => { session.destroy() }
    }
  }
}

for (const [protocol, { server, send }] of Object.entries(OVER)) {
  t.test(`attack 125: the notice is sent to a client that left before the change, and the application closes, over ${protocol}`, async t => {
    const store = new HoldingStore()
    const start = await startMailApp(t, { store }, {}, server)
    const { app, browser, mails } = start
    await confirmAddress(browser, await registerAt(start))
    const left = whenLeft(app)
    const port = await listen(app)
    store.holds = true
    const leave = send(t, port, headersOf(browser), JSON.stringify({ current: ADA.password, password: NEW_PASSWORD }))
    await store.reached.promise

    leave()
    await left.promise
    store.held.resolve()

    t.match(await mails.next('password-changed'), { to: ADA.email })
    await app.close()
  })
}

t.test('attack 125: hanging mails have ten seconds in all while the application closes, then they are dropped and logged', async t => {
  const written: string[] = []
  const server = { logger: { level: 'info', stream: { write: (line: string) => { written.push(line) } } } }
  let sending = 0
  const full = deferred()
  const sendMail: SendMail = async () => {
    if (++sending === 32) full.resolve()
    return deferred().promise
  }
  const start = await startMailApp(t, {}, { sendMail, mails: { unknownAddress: true } }, server)
  const { app, browser } = start
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  for (let i = 0; i < 40; i++) await browser.post(FORGOT, { email: `${i}@example.com` })
  await full.promise

  const seconds = await secondsUntil(app.close())

  t.ok(seconds >= 10 && seconds <= 12, `${seconds} seconds`)
  const lines = written.map(line => JSON.parse(line)).filter(({ event }) => event === 'fastify-svc-auth.mail')
  t.match(lines, Array(40).fill({ level: 30, kind: 'unknown-address', requestId: /^req-/, reason: 'closing' }))
  t.equal(lines.length, 40)
  mock.timers.tick(30_000)
  for (let i = 0; i < 10; i++) await turn()
  t.equal(sending, 32, 'those that waited are not sent')
})

t.test('attack 125: mails whose request is answered while the application closes are counted before the store closes', async t => {
  class CountingStore extends MemoryAuthStore implements Pick<StoreCapabilities, 'attempts'> {
    readonly attempts = new MemoryAttempts()

    override async close (): Promise<void> {
      this.attempts.count = async () => { throw new Error('the store is closed') }
    }
  }
  const [reached, held] = [deferred(), deferred()]
  const mails = mailbox()
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onSend', async () => {
    reached.resolve()
    await held.promise
  })
  const session = { secret: SESSION_SECRET }
  const local = localProvider({ sendMail: mails.sendMail, mails: { unknownAddress: true } })
  await app.register(authPlugin, { baseUrl: BASE_URL, local, store: new CountingStore(), session })
  const answer = app.inject({ method: 'POST', url: FORGOT, payload: { email: ADA.email } })
  await reached.promise

  const closed = app.close()
  for (let i = 0; i < 10; i++) await turn()
  held.resolve()
  await Promise.all([answer, closed])

  t.match(mails.all, [{ kind: 'unknown-address' }])
})

/** Lets time pass, second by second, until a promise resolves; timers must be mocked. */
async function secondsUntil (end: Promise<unknown>): Promise<number> {
  let isOver = false
  end.then(() => { isOver = true })
  for (let seconds = 0; ; seconds++) {
    for (let i = 0; i < 10; i++) await turn()
    if (isOver || seconds > 60) return seconds
    mock.timers.tick(1000)
  }
}

/** Tells when the client of the next request has left before it was answered. */
function whenLeft (app: FastifyInstance): Deferred {
  const left = deferred()
  app.server.once('request', (_request, response) => { response.once('close', left.resolve) })
  return left
}

async function listen (app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

function headersOf ({ cookies }: Browser): Record<string, string> {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  return { cookie, accept: 'application/json', 'content-type': 'application/json' }
}
