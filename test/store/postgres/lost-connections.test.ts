/** What is sent again when a connection is lost, and what is not. */
import { hash, randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { Accounts } from '../../../lib/accounts/accounts.js'
import { SqlAuthStore } from '../../../lib/engines/sql.js'
import { advanceClock, hastenTime } from '../../helpers/clock.js'
import { clientOf, emptyDatabase } from '../../helpers/postgres.js'
import { isSoon } from '../../helpers/soon.js'
import { startProxy } from '../../helpers/tcp-proxy.js'
import { newUser } from '../users.js'
import { UNAVAILABLE, connections } from './database.js'

const NOW = Date.now()
const KIND = 'sign-in'

type Operation = (store: SqlAuthStore, id: string) => unknown

const READS: Record<string, Operation> = {
  'findUser by id': (store, userId) => store.findUser({ userId }),
  'findUser by e-mail': (store, id) => store.findUser({ email: `${id}@example.com` }),
  'findUser by link': (store, subject) => store.findUser({ provider: 'dev', subject }),
  links: (store, userId) => store.links(userId),
  status: (store, userId) => store.status(userId),
  users: (store, email) => store.users({ after: null, limit: 1, order: 'id', search: email, blocked: null }),
  'a change of an account that is not there': (store, subject) => store.change({ provider: 'dev', subject }, {}, () => ({ result: null })),
  'sessions.find': ({ sessions }, id) => sessions.find(id, NOW),
  'sessions.ofUser': ({ sessions }, userId) => sessions.ofUser(userId, 0, NOW),
  'entries.find': ({ entries }, id) => entries.find({ hash: id, kind: KIND, owner: id }),
  'entries.count': ({ entries }, owner) => entries.count(owner, KIND, 0)
}

const WRITES: Record<string, Operation> = {
  insert: (store, userId) => new Accounts(store).createUser(newUser({ userId })),
  'sessions.insert': ({ sessions }, idHash) =>
    sessions.insert({ idHash, user: null, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 60_000 }, null),
  'sessions.update': ({ sessions }, id) => sessions.update(id, { seenAt: NOW }),
  'sessions.end': ({ sessions }, id) => sessions.end(id, { now: NOW, isSignOut: false }),
  'sessions.end by a sign-out': ({ sessions }, id) => sessions.end(id, { now: NOW, isSignOut: true }),
  'entries.put': ({ entries }, id) => entries.put({ hash: id, kind: KIND, owner: id, content: {}, startedAt: NOW }, 8),
  'entries.take': ({ entries }, id) => entries.take(id, KIND, [id]),
  'entries.attempt': ({ entries }, id) => entries.attempt({ hash: id, kind: KIND, owner: id }, 5),
  'attempts.count': ({ attempts }, key) => attempts?.count([{ key, max: 5, timeWindow: 60_000 }]),
  'revocations.record': ({ revocations }, userId) => revocations?.record(userId),
  // Among counts of attempts, which write.
  findCredential: (store, id) => store.findCredential(`${id}@example.com`)
}

/** A store whose connections go through a network that can fail. */
async function startStore (t: Test, max = 1) {
  const url = await emptyDatabase(t)
  const proxy = await startProxy(t, url)
  const store = new SqlAuthStore(`${proxy.url}?max=${max}`)
  t.teardown(() => store.close())
  return { url, proxy, store }
}

t.test('when a connection is lost', async t => {
  const { proxy, store } = await startStore(t)
  /** Loses the connection when an id is sent for the first time; resolves to how often it was sent. */
  const lose = async (operation: Operation, settled: (answer: Promise<unknown>) => Promise<unknown>): Promise<number> => {
    await operation(store, randomUUID())
    let sent = 0
    const id = randomUUID()
    const hashed = hash('sha256', id, 'base64url')
    proxy.hear = (data, line) => {
      if ((data.includes(id) || data.includes(hashed)) && ++sent === 1) setImmediate(() => { line.client.resetAndDestroy() })
    }
    await settled((async () => operation(store, id))())
    return sent
  }

  for (const [name, operation] of Object.entries(READS)) {
    t.test(`${name} is asked again on another one`, async t => {
      t.equal(await lose(operation, answer => t.resolves(answer)), 2)
    })
  }

  for (const [name, operation] of Object.entries(WRITES)) {
    t.test(`${name} is unavailable, and not sent again`, async t => {
      t.equal(await lose(operation, answer => t.rejects(answer, UNAVAILABLE)), 1)
    })
  }

  t.test('a change of an account that was sent is unavailable, and not sent again', async t => {
    const user = newUser()
    await new Accounts(store).createUser(user)
    let sent = 0
    proxy.hear = (data, line) => {
      if (data.includes('a new name') && ++sent === 1) setImmediate(() => { line.client.resetAndDestroy() })
    }

    await t.rejects(new Accounts(store).changeUser(user.userId, { name: 'a new name' }), UNAVAILABLE)

    t.equal(sent, 1)
  })

  t.test('a read is asked again once', async t => {
    await store.findUser({ userId: randomUUID() })
    const userId = randomUUID()
    let sent = 0
    proxy.hear = (data, line) => {
      if (data.includes(userId)) setImmediate(() => { sent++; line.client.resetAndDestroy() })
    }

    await t.rejects(store.findUser({ userId }), UNAVAILABLE)

    t.equal(sent, 2)
  })
})

t.test('a read that Postgres answers with an error is not asked again', async t => {
  const { url, proxy, store } = await startStore(t)
  await store.links(randomUUID())
  await clientOf(t, url)`alter table svc_auth_provider_links rename column subject to hidden`
  const userId = randomUUID()
  let sent = 0
  proxy.hear = data => { if (data.includes(userId)) sent++ }

  await t.rejects(store.links(userId), UNAVAILABLE)

  t.equal(sent, 1)
})

t.test('a connection that was closed while it was idle is replaced before a write', async t => {
  const { url, proxy, store } = await startStore(t)
  const admin = clientOf(t, url)
  await store.links(randomUUID())
  proxy.reset()
  t.ok(await isSoon(async () => (await connections(statement => admin.unsafe(statement))).length === 0))

  t.ok(await new Accounts(store).createUser(newUser()))
})

t.test('a connection that was idle for fifteen seconds is tried before it is used', async t => {
  t.test('one that a router has forgotten fails no write, and is given up with the others', async t => {
    const { proxy, store } = await startStore(t, 2)
    await store.links(randomUUID())
    await Promise.all([store.links(randomUUID()), store.links(randomUUID())])
    const before = proxy.connections
    proxy.silence()
    advanceClock(t, 15_001)
    let tried = 0
    proxy.hear = data => { if (data.includes('select 1')) tried++ }
    const write = async (): Promise<void> => { t.ok(await new Accounts(store).createUser(newUser())) }

    await write()
    await Promise.all([write(), write()])

    t.equal(tried, 1)
    t.equal(proxy.connections, before + 2)
  })

  t.test('one that works is used, and is not tried again', async t => {
    const { proxy, store } = await startStore(t)
    await store.links(randomUUID())
    const before = proxy.connections
    advanceClock(t, 15_001)
    proxy.roundTrips = 0

    await store.links(randomUUID())
    await store.links(randomUUID())

    t.equal(proxy.roundTrips, 3)
    t.equal(proxy.connections, before)
  })

  t.test('a store that is closed meanwhile opens none', async t => {
    const { proxy, store } = await startStore(t)
    await store.links(randomUUID())
    const before = proxy.connections
    advanceClock(t, 15_001)
    const asked = new Promise<void>(resolve => { proxy.hear = (_data, line) => { line.isSilent = true; resolve() } })

    const refused = t.rejects(store.links(randomUUID()), UNAVAILABLE)
    await asked
    hastenTime(t, 10)
    await Promise.all([store.close(), refused])

    t.equal(proxy.connections, before)
  })
})
