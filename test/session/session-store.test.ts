import { setImmediate as immediate, setTimeout as wait } from 'node:timers/promises'
import type { FastifyRequest, Session } from 'fastify'
import t from 'tap'
import { KeyedMutex, TIMEOUT_MS } from '../../lib/base/concurrency.js'
import { type CallbackStore, ExpressSessions, SessionEntries, entryId } from '../../lib/session/express.js'
import { OwnStore, RequestSessions, sessionsOf } from '../../lib/session/request-sessions.js'
import { RotatingSigner } from '../../lib/session/register.js'
import { stopTime } from '../helpers/clock.js'
import { deferred } from '../helpers/deferred.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const USER_ID = '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11'

const session = (subject: string): Session => ({
  cookie: { originalMaxAge: null },
  svcAuth: {
    principal: { userId: USER_ID, provider: 'local', claims: { sub: subject } }, generation: 0, at: 0, methods: []
  }
})
const call = (ask: (done: (error?: unknown) => void) => void) => new Promise<unknown>(resolve => { ask(resolve) })

t.test('an entry has an id of 36 characters that tells neither the session nor the state', async t => {
  for (const kind of ['pending', 'started', 'ended', 'signed-out', 'signed-in'] as const) {
    const id = entryId(kind, 'a secret state')
    t.equal(id.length, 36)
    t.match(id, /^svc-/)
    t.notMatch(id, /secret/)
  }
  t.not(entryId('pending', '1'), entryId('ended', '1'))
})

t.test('a sign-out is noted unless it fails, stays noted when another one fails, and is done by one', async t => {
  const store = new SlowSessionStore()
  const entries = new SessionEntries(store)
  const signOut = () => new ExpressSessions(store).signOut({ id: '1', userId: USER_ID })
  const isNoted = async () => await entries.read(entryId('signed-out', '1')) !== null
  const failing = async () => {
    const { destroy } = store
    store.destroy = (_id, done) => { store.destroy = destroy; done(new Error('down')) }
    await t.rejects(signOut(), { code: 'unavailable', cause: { message: 'down' } })
  }
  await entries.write('1', {}, 1000)

  await failing()
  t.equal(await isNoted(), false)
  await entries.write('1', {}, 1000)
  t.strictSame(await signOut(), { userId: USER_ID, isRecorded: false })
  await failing()
  t.equal(await isNoted(), true)
  t.equal(await signOut(), null)
})

t.test('a sign-out ends the session that replaced the signed-out one meanwhile', async t => {
  const store = new SlowSessionStore()
  const [sessions, entries] = [new ExpressSessions(store), new SessionEntries(store)]
  const signedOut = { userId: USER_ID, isRecorded: false }
  await sessions.create('2', session('ada'), { replaced: '1' })

  t.strictSame(await sessions.signOut({ id: '1', userId: null }), signedOut, 'this call signed the user out')

  t.equal(await entries.read('2'), null)
  t.not(await entries.read(entryId('ended', '2')), null)

  await sessions.create('4', session('ada'), { replaced: '3' })
  await sessions.remove('4')
  t.equal(await sessions.signOut({ id: '3', userId: null }), null, 'the sign-in has removed its session itself')
  await sessions.create('6', session('ada'), { replaced: '5' })
  await sessions.remove('6')
  t.strictSame(await sessions.signOut({ id: '5', userId: USER_ID }), signedOut, 'the session that it had replaced had a user')
})

t.test('attack 59: a session that is written after the wait is over does not outlive its end', async t => {
  const stored = new Map<string, Session>()
  const written = deferred()
  const late = deferred()
  let isLate = false
  const store: CallbackStore = {
    get: (id, done) => { done?.(null, stored.get(id) ?? null) },
    set: (id, session, done) => {
      const write = () => {
        stored.set(id, session)
        done()
      }
      if (isLate && id === '1') late.promise.then(write).then(written.resolve)
      else write()
    },
    destroy: (id, done) => {
      stored.delete(id)
      done()
    }
  }
  const sessions = new RequestSessions(new ExpressSessions(store), true)
  await call(done => { sessions.set('1', session('ada'), done) })
  isLate = true
  const letPass = stopTime(t)
  const saving = call(done => { sessions.set('1', session('ada'), done) })
  await immediate()
  new ExpressSessions(store).end('1')
  letPass(TIMEOUT_MS)
  const failure = await saving
  t.match(failure, { code: 'unavailable', cause: { message: /^the session store did not answer within 5 seconds/ } })

  late.resolve()
  await written.promise
  await new Promise(resolve => { setImmediate(resolve) })
  t.equal(stored.get('1'), undefined)
})

t.test('a store that reports a missing entry as ENOENT has none, one that fails is unavailable', async t => {
  const failing = (error: Error): SessionEntries => new SessionEntries({
    get: (_id, done) => { done?.(error) },
    set: (_id, _session, done) => { done(error) },
    destroy: (_id, done) => { done(error) }
  })
  const missing = failing(Object.assign(new Error(), { code: 'ENOENT' }))
  t.equal(await missing.read('1'), null)
  await missing.remove('1')
  await t.rejects(missing.write('1', {}, 1), { code: 'unavailable' }, 'what cannot be written is not there')
  const down = failing(new Error('down'))
  const attempts: Array<() => Promise<unknown>> = [() => down.read('1'), () => down.write('1', {}, 1), () => down.remove('1')]
  for (const attempt of attempts) await t.rejects(attempt(), { code: 'unavailable', statusCode: 503 })
})

t.test('a store that hangs takes five seconds of a request, however many calls it makes, and later calls wait again', async t => {
  const hanging: CallbackStore = { get: () => {}, set: () => {}, destroy: () => {} }
  const entries = new SessionEntries(hanging)
  const letPass = stopTime(t)
  const outcomeOf = async (call: Promise<unknown>) => Promise.race([call.catch(({ code }) => code), immediate('waiting')])

  const first = entries.read('1')
  letPass(TIMEOUT_MS - 1)
  t.equal(await outcomeOf(first), 'waiting')
  letPass(1)
  t.equal(await outcomeOf(first), 'unavailable')
  for (let call = 0; call < 3; call++) {
    const write = entries.write('1', {}, 1)
    letPass(1)
    t.equal(await outcomeOf(write), 'unavailable')
  }

  letPass(TIMEOUT_MS + 1)
  const next = entries.read('1')
  letPass(TIMEOUT_MS - 1)
  t.equal(await outcomeOf(next), 'waiting')
  letPass(1)
  t.equal(await outcomeOf(next), 'unavailable')
})

t.test('ended sessions', async t => {
  const saved = (sessions: RequestSessions, id: string) => call(done => { sessions.set(id, session('ada'), done) })

  t.test('cannot be saved again, also by another process on the same store', async t => {
    const store = new SlowSessionStore()
    for (let round = 0; round < 30; round++) {
      const id = `session-${round}`
      const [one, other] = [new RequestSessions(new ExpressSessions(store), true), new RequestSessions(new ExpressSessions(store), true)]
      await Promise.all([saved(one, id), saved(other, id)])
      await Promise.all([new ExpressSessions(store).end(id), saved(other, id), saved(one, id)])
      t.equal(await one.backend.read(id), null)
    }
    t.equal(store.sessions.length, 0)
  })

  t.test('do not come back for a moment either', async t => {
    const store = new SlowSessionStore()
    const sessions = new RequestSessions(new ExpressSessions(store), true)
    await saved(sessions, '1')
    await sessions.backend.end('1')
    const written: string[] = []
    const { set } = store
    store.set = (id, session, done) => { written.push(id); set.call(store, id, session, done) }
    await saved(sessions, '1')
    t.strictSame(written, [])
  })

  t.test('leave no mark when they were never stored', async t => {
    const store = new SlowSessionStore()
    await call(done => { new RequestSessions(new ExpressSessions(store), true).destroy('1', done) })
    t.equal(store.entries.size, 0)
  })

  t.test('a store that fails reports it to a save, an end and a read', async t => {
    const store = new SlowSessionStore()
    const sessions = new RequestSessions(new ExpressSessions(store), true)
    await saved(sessions, '1')
    store.failure = new Error('down')
    t.match(await saved(sessions, '1'), { code: 'unavailable' })
    t.match(await call(done => { sessions.destroy('1', done) }), { code: 'unavailable' })
    const own = new OwnStore(() => new ExpressSessions(store), false, store)
    t.match(await call(done => { own.get('1', done) }), { code: 'unavailable' })
  })
})

t.test('a save of the application keeps the plugin\'s part as another request has updated it', async t => {
  const store = new SlowSessionStore()
  const sessions = new RequestSessions(new ExpressSessions(store), true)
  const before = session('ada')
  await call(done => { sessions.set('1', before, done) })
  await new SessionEntries(store).writeSession('1', session('ada, refreshed'))

  await call(done => { sessions.set('1', Object.assign(before, { cart: 'apples' }), done) })

  const present = await sessions.backend.read('1')
  t.match(present, { cart: 'apples' })
  t.equal(present?.svcAuth?.principal.claims.sub, 'ada, refreshed')
})

t.test('a session that refers to no store is one of another version of @fastify/session', async t => {
  const request = { session: {}, sessionStore: new SlowSessionStore() } as unknown as FastifyRequest
  t.throws(() => sessionsOf(request), { message: 'this version of @fastify/session is not supported; install ^11.1.3' })
})

t.test('work on one key takes turns, and leaves nothing behind', async t => {
  const turns = new KeyedMutex()
  const order: string[] = []
  const work = (name: string, fails = false) => turns.run('key', async () => {
    order.push(`${name} starts`)
    await wait(2)
    order.push(`${name} ends`)
    if (fails) throw new Error(name)
    return name
  })
  const other = turns.run('other', async () => { order.push('other') })
  const settled = await Promise.allSettled([work('a'), work('b', true), work('c'), other])
  await wait(0)
  t.strictSame(settled.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  t.strictSame(order.filter(entry => entry !== 'other'), ['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
  t.ok(order.indexOf('other') < order.indexOf('a ends'))
  t.equal(turns.size, 0)
})

t.test('a signature of an older secret is kept for a bounded number of sessions', async t => {
  const old = new RotatingSigner(['an old secret'], undefined)
  const signer = new RotatingSigner(['a new secret', 'an old secret'], undefined)
  const cookie = old.sign('first')
  t.ok(signer.unsign(cookie).valid)
  t.equal(signer.sign('first'), cookie)
  for (const other of [`${cookie}x`, cookie.replace(/.$/, last => last === 'A' ? 'B' : 'A'), 'first', 'first.', '.', '']) {
    t.strictSame(signer.unsign(other), { valid: false, renew: false, value: null }, other)
  }
  for (let i = 0; i < 10_000; i++) signer.unsign(old.sign(`session ${i}`))
  t.not(signer.sign('first'), cookie)
})
