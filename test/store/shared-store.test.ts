import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin, { type AuthStore, MemoryAuthStore, OptionsError, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { ADA } from '../helpers/mail-app.js'
import { emptyDatabase } from '../helpers/postgres.js'

/** A store of the application that counts how often it is closed. */
class OwnStore extends MemoryAuthStore {
  closed = 0

  override async close (): Promise<void> {
    this.closed++
  }
}

t.test('a store that applications share is closed with the last of them', async t => {
  for (const store of [new SqlAuthStore(':memory:'), new SqlAuthStore(await emptyDatabase(t)), new OwnStore()]) {
    const [one, other] = [await start(t, store), await start(t, store)]
    t.equal(await register(one), 201)

    await one.close()
    await one.close()
    t.equal(await login(other), 200)
    if (store instanceof OwnStore) t.equal(store.closed, 0)

    await other.close()
    if (store instanceof OwnStore) t.equal(store.closed, 1)
    else await t.rejects(store.findUser(ADA), { code: 'unavailable', cause: { message: 'the store is closed' } })
  }
})

t.test('two registrations in one application share a store too', async t => {
  const store = new OwnStore()
  const app = Fastify()
  for (const prefix of ['/one', '/other']) {
    await app.register(async scope => {
      const session = { secret: SESSION_SECRET, cookieName: prefix.slice(1) }
      await scope.register(authPlugin, { prefix, local: localProvider(), store, session })
    })
  }
  await app.ready()

  await app.close()

  t.equal(store.closed, 1)
})

t.test('a registration that fails neither closes a shared store nor keeps it open', async t => {
  const store = new OwnStore()
  const app = await start(t, store)
  const failing = Fastify()
  failing.post('/auth/logout', async () => {})
  await t.rejects(async () => failing.register(authPlugin, { store, session: { secret: SESSION_SECRET } }))

  await failing.close()
  t.equal(store.closed, 0)

  const left = Fastify()
  t.teardown(() => left.close())
  left.post('/auth/logout', async () => {})
  await t.rejects(async () => left.register(authPlugin, { store, session: { secret: SESSION_SECRET } }))
  await app.close()
  t.equal(store.closed, 1, 'the application that failed was not closed')
})

t.test('a store of an application that could not be registered is closed with it', async t => {
  const store = new OwnStore()
  const failing = Fastify()
  failing.post('/auth/logout', async () => {})
  await t.rejects(async () => failing.register(authPlugin, { store, session: { secret: SESSION_SECRET } }))

  await failing.close()

  t.equal(store.closed, 1)
})

t.test('an application that starts when the store is closed is refused, and says what to do', async t => {
  const store = new SqlAuthStore(':memory:')
  await (await start(t, store)).close()

  await t.rejects(start(t, store), new OptionsError('the store is closed; make a new one for an application that starts later'))
})

async function start (t: Test, store: AuthStore): Promise<FastifyInstance> {
  return startApp(t, { local: localProvider(), store })
}

async function register (app: FastifyInstance): Promise<number> {
  return (await new Browser(app).post('/auth/local/register', ADA)).statusCode
}

async function login (app: FastifyInstance): Promise<number> {
  return (await new Browser(app).post('/auth/local/login', ADA)).statusCode
}
