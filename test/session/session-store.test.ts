import { setTimeout as wait } from 'node:timers/promises'
import type { Session } from 'fastify'
import t from 'tap'
import { hasSignedOut, keepEnded, withSignOutNoted } from '../../lib/session/ended-sessions.js'
import { MemorySessionStore } from '../../lib/session/memory-session-store.js'
import { RotatingSigner } from '../../lib/session/rotating-signer.js'
import { type CallbackStore, entryId, readEntry, removeEntry, writeEntry } from '../../lib/session/session-store.js'
import { Turns } from '../../lib/base/turns.js'
import { deferred } from '../helpers/deferred.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'

const session = (user: string): Session => ({
  cookie: { originalMaxAge: null },
  svcAuth: { principal: { userId: user, provider: 'local', claims: { sub: user } } }
})

t.test('the session store of one process keeps copies for a time', async t => {
  t.test('the session store of one process hands out copies', async t => {
    const store = new MemorySessionStore()
    const stored = session('ada')
    store.set('1', stored, () => {})
    delete stored.svcAuth
    const first = await readEntry(store, '1')
    delete first?.svcAuth
    t.equal((await readEntry(store, '1'))?.svcAuth?.principal.userId, 'ada')
  })

  t.test('the session store lets entries end with their cookie, and forgets them', async t => {
    const store = new MemorySessionStore()
    const now = Date.now()
    await writeEntry(store, 'short', {}, 1000)
    await writeEntry(store, 'long', {}, 1_000_000)
    store.set('session', session('ada'), () => {})
    t.ok(await readEntry(store, 'short'))

    t.intercept(Date, 'now', { value: () => now + 61_000 })
    t.equal(await readEntry(store, 'short'), null)
    await writeEntry(store, 'another', {}, 1000)
    t.intercept(Date, 'now', { value: () => now })
    t.equal(await readEntry(store, 'short'), null, 'it is gone, not only hidden')
    t.ok(await readEntry(store, 'long'))
    t.ok(await readEntry(store, 'session'), 'a session without an end stays')
  })

  t.test('attack 32: the session store keeps the latest 50,000 entries of visitors, and all of signed-in users', async t => {
    const store = new MemorySessionStore()
    const visit = (id: number | string) => { store.set(String(id), { cookie: { originalMaxAge: null } }, () => {}) }
    visit('first')
    visit('signs in')
    store.set('signs in', session('ada'), () => {})
    visit('leaves')
    store.destroy('leaves', () => {})
    for (let visitor = 0; visitor < 49_999; visitor++) visit(visitor)
    visit('first')
    t.ok(await readEntry(store, '0'))

    visit('one more')
    t.equal(await readEntry(store, '0'), null)
    t.ok(await readEntry(store, 'first'), 'who comes back is not the oldest any more')
    t.ok(await readEntry(store, '1'))
    t.ok(await readEntry(store, 'one more'))
    t.ok(await readEntry(store, 'signs in'))
  })
})

t.test('attack 35: the mark of an ended session outlasts a flood of visitors, also when it is written twice', async t => {
  const store = new MemorySessionStore()
  keepEnded(store)
  const call = (ask: (done: (error?: unknown) => void) => void) => new Promise<unknown>(resolve => { ask(resolve) })
  await call(done => { store.set('1', session('ada'), done) })
  for (let twice = 0; twice < 2; twice++) await call(done => { store.destroy('1', done) })
  const visitor = { cookie: { originalMaxAge: null } }
  for (let visits = 0; visits < 50_001; visits++) MemorySessionStore.prototype.set.call(store, `visitor-${visits}`, visitor, () => {})

  await call(done => { store.set('1', session('ada'), done) })
  t.equal(await readEntry(store, '1'), null)
})

t.test('a sign-out is noted unless it fails, stays noted when another one fails, and is done by one', async t => {
  const store = new SlowSessionStore()
  const fails = async () => { throw new Error('down') }
  const ends = async () => removeEntry(store, '1')
  await writeEntry(store, '1', {}, 1000)

  await t.rejects(withSignOutNoted(store, '1', fails), { message: 'down' })
  t.equal(await hasSignedOut(store, '1'), false)
  t.equal(await withSignOutNoted(store, '1', ends), true)
  await t.rejects(withSignOutNoted(store, '1', fails), { message: 'down' })
  t.equal(await hasSignedOut(store, '1'), true)
  t.equal(await withSignOutNoted(store, '1', ends), false)
})

t.test('a sign-out that fails says what has failed, also when its note cannot be taken back', async t => {
  const store = new SlowSessionStore()
  const fails = async () => {
    store.failure = new Error('gone')
    throw new Error('down')
  }
  await t.rejects(withSignOutNoted(store, '1', fails), { message: 'down' })
})

t.test('attack 59: a session that is written when no request waits any more does not outlive its end', async t => {
  const entries = new Map<string, Session>()
  const written = deferred()
  const late = deferred()
  const store: CallbackStore = {
    get: (id, done) => { done(null, entries.get(id) ?? null) },
    set: (id, session, done) => {
      const write = () => {
        entries.set(id, session)
        done()
      }
      if (id === '1') late.promise.then(write).then(written.resolve)
      else write()
    },
    destroy: (id, done) => {
      entries.delete(id)
      done()
    }
  }
  keepEnded(store)
  const failure = await new Promise<unknown>(resolve => {
    store.set('1', session('ada'), resolve)
    store.destroy('1', () => {})
  })
  t.match(failure, { code: 'unavailable', cause: { message: /^the session store did not answer within 5 seconds/ } })

  late.resolve()
  await written.promise
  await new Promise(resolve => { setImmediate(resolve) })
  t.equal(entries.get('1'), undefined)
})

t.test('a store that reports a missing entry as ENOENT has none, one that fails is unavailable', async t => {
  const failing = (error: Error): CallbackStore => ({
    get: (_id, done) => { done(error) },
    set: (_id, _session, done) => { done(error) },
    destroy: (_id, done) => { done(error) }
  })
  const missing = failing(Object.assign(new Error(), { code: 'ENOENT' }))
  t.equal(await readEntry(missing, '1'), null)
  await removeEntry(missing, '1')
  await t.rejects(writeEntry(missing, '1', {}, 1), { code: 'unavailable' }, 'what cannot be written is not there')
  const down = failing(new Error('down'))
  const attempts: Array<() => Promise<unknown>> = [() => readEntry(down, '1'), () => writeEntry(down, '1', {}, 1), () => removeEntry(down, '1')]
  for (const attempt of attempts) {
    await t.rejects(Promise.resolve(attempt()), { code: 'unavailable', statusCode: 503 })
  }
})

t.test('ended sessions stay ended', async t => {
  const set = (store: CallbackStore, id: string) => new Promise<unknown>(resolve => { store.set(id, session('ada'), resolve) })

  t.test('an ended session cannot be saved again, also by another process on the same store', async t => {
    const shared = new SlowSessionStore()
    const process = () => {
      const store: CallbackStore = { get: shared.get.bind(shared), set: shared.set.bind(shared), destroy: shared.destroy.bind(shared) }
      keepEnded(store)
      return store
    }
    for (let round = 0; round < 30; round++) {
      const [one, other] = [process(), process()]
      await set(one, `session-${round}`)
      await Promise.all([removeEntry(one, `session-${round}`), set(other, `session-${round}`), set(one, `session-${round}`)])
      t.equal(await readEntry(one, `session-${round}`), null)
    }
    t.equal(shared.sessions.length, 0)
  })

  t.test('an ended session does not come back for a moment either', async t => {
    const store = new SlowSessionStore()
    const written: string[] = []
    const { set: original } = store
    store.set = (id, session, done) => { written.push(id); original.call(store, id, session, done) }
    keepEnded(store)
    await removeEntry(store, '1')
    await set(store, '1')
    t.notOk(written.includes('1'))
  })

  t.test('ended sessions are marked once, however often the store is given', async t => {
    const store = new SlowSessionStore()
    keepEnded(store)
    const { set: wrapped } = store
    keepEnded(store)
    t.equal(store.set, wrapped)
  })

  t.test('a store that fails reports it to a save and to an end', async t => {
    const store = new SlowSessionStore()
    keepEnded(store)
    await set(store, '1')
    store.failure = new Error('down')
    t.ok(await set(store, '1'))
    await t.rejects(removeEntry(store, '1'), { code: 'unavailable' })
  })

  t.test('a read-only store reports it to a save', async t => {
    const store = new MemorySessionStore()
    store.set = (_id, _session, done) => { done(new Error('read-only')) }
    keepEnded(store)
    t.match(await set(store, '1'), { code: 'unavailable' })
  })

  t.test('entries beside a session can be removed and written again', async t => {
    const store = new MemorySessionStore()
    keepEnded(store)
    const id = entryId('pending', '1')
    await writeEntry(store, id, { pending: [1] }, 1000)
    await removeEntry(store, id)
    await writeEntry(store, id, { pending: [2] }, 1000)
    t.match(await readEntry(store, id), { pending: [2] })
  })
})

t.test('work on one key takes turns, and leaves nothing behind', async t => {
  const turns = new Turns()
  const order: string[] = []
  const work = (name: string, fails = false) => turns.take('key', async () => {
    order.push(`${name} starts`)
    await wait(2)
    order.push(`${name} ends`)
    if (fails) throw new Error(name)
    return name
  })
  const settled = await Promise.allSettled([work('a'), work('b', true), work('c'), turns.take('other', async () => { order.push('other') })])
  await wait(0)
  t.strictSame(settled.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  t.strictSame(order.filter(entry => entry !== 'other'), ['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
  t.ok(order.indexOf('other') < order.indexOf('a ends'))
  t.equal(turns.size, 0)
})

t.test('a signature of an older secret is kept for so many sessions', async t => {
  const old = new RotatingSigner(['an old secret'], undefined)
  const signer = new RotatingSigner(['a new secret', 'an old secret'], undefined)
  const cookie = old.sign('first')
  t.ok(signer.unsign(cookie).valid)
  t.equal(signer.sign('first'), cookie)
  t.notOk(signer.unsign(`${cookie}x`).valid)
  for (let i = 0; i < 10_000; i++) signer.unsign(old.sign(`session ${i}`))
  t.not(signer.sign('first'), cookie)
})
