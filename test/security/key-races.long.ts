import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { ADA, signedIn, startServer } from '../helpers/oauth-app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'
import { type ServerProcess, apiKeys, startServerProcess } from './oauth-process.js'

const MOST = 50
const BY = { actor: 'test' }
const READ = { name: 'Laptop', scopes: ['notes:read'] }
/** After how many answers a process is killed. */
const KILLS = [1, 3, 7, 12]
/** How many requests are under way then. */
const IN_FLIGHT = 6

t.setTimeout(300_000)

t.test('races for API keys on Postgres', async t => testRaces(t, postgresDatabase(await emptyDatabase(t))))
t.test('races for API keys on an SQLite file', async t => testRaces(t, sqliteDatabase(t)))

async function testRaces (t: Test, { target }: TestDatabase): Promise<void> {
  const app = await startServer(t, {}, { store: new SqlAuthStore(target), rateLimit: false, apiKeys })
  const { auth } = app
  const [stays, first] = await Promise.all([startServerProcess(t, target), startServerProcess(t, target)])
  let falls: ServerProcess = first

  /** Asks the process that falls, some at a time; after so many answers it is killed, and started again. */
  const killedDuring = async <I, T>(killAfter: number, inputs: readonly I[], ask: (input: I) => Promise<T>): Promise<T[]> => {
    const given: T[] = []
    let [answers, kill] = [0, Promise.resolve()]
    const waiting = inputs.entries()
    await Promise.all(Array.from({ length: IN_FLIGHT }, async () => {
      for (const [index, input] of waiting) {
        given[index] = await ask(input)
        answers++
        if (answers === killAfter) kill = falls.kill()
      }
    }))
    await kill
    falls = await startServerProcess(t, target)
    return given
  }

  /** Uses a key in both processes all the time; returns what ends that, and has what was answered. */
  const usesOf = (key: string) => {
    const uses: Array<{ askedAt: number, status: number | null }> = []
    const over = new AbortController()
    const use = async (server: ServerProcess): Promise<void> => {
      while (!over.signal.aborted) {
        const askedAt = performance.now()
        uses.push({ askedAt, status: await server.use(key) })
      }
    }
    const all = Promise.all([stays, falls, stays, falls].map(use))
    return async () => {
      over.abort()
      await all
      return uses
    }
  }

  type End = (key: { id: string, userId: string }) => Promise<unknown>
  const ends: Record<string, End> = {
    'the button of the account page': async ({ id }) => {
      const { statusCode } = await (await signedIn(app)).post('/auth/local/keys/end', { id })
      t.equal(statusCode, 204)
    },
    endKey: async ({ id }) => auth.endKey(id, BY),
    'a block': async ({ userId }) => auth.block(userId),
    'a sign-out everywhere with the keys': async ({ userId }) => auth.signOutEverywhere(userId, { keys: true }),
    'a deletion': async ({ userId }) => auth.deleteUser(userId)
  }
  for (const [name, end] of Object.entries(ends)) {
    await t.test(`${name} in one process ends a key that others use: once it is answered, no use passes`, async t => {
      await signedIn(app)
      const userId = String((await auth.findUser({ email: ADA.email }))?.userId)
      await auth.unblock(userId)
      const { id, key } = await auth.createKey({ userId, ...READ }, BY)
      t.strictSame([await stays.use(key), await falls.use(key)], [200, 200])

      const stop = usesOf(key)
      await wait(100)
      await end({ id, userId })
      const endedAt = performance.now()
      await wait(200)
      const uses = await stop()
      const after = uses.filter(({ askedAt }) => askedAt > endedAt)

      t.ok(after.length > 0 && uses.length > after.length, `${uses.length} uses, ${after.length} of them afterwards`)
      t.strictSame(after.filter(({ status }) => status !== 401), [])
      t.strictSame(uses.filter(({ status }) => status !== 200 && status !== 401), [])
    })
  }

  await t.test('of many keys that are made at once, an owner has fifty at most, and those that were answered are good', async t => {
    const owner = 'job:at-once'
    for (let count = 0; count < MOST - 5; count++) await auth.createKey({ owner, ...READ }, BY)
    const made = await Promise.all(Array.from({ length: 20 }, async (_, index) => [stays, falls][index % 2]?.makeKey(owner)))
    const answered = made.flatMap(key => key !== null && typeof key === 'object' ? [key] : [])
    t.strictSame(made.filter(key => typeof key !== 'object' && key !== 409), [], 'each is made or refused')
    t.equal((await auth.keys({ owner })).length, MOST - 5 + answered.length)
    t.ok(answered.length <= 5, `${answered.length} were made`)
    for (const { key } of answered) t.equal(await stays.use(key), 200)
  })

  for (const killAfter of KILLS) {
    await t.test(`a key that was answered is not lost by a kill after ${killAfter} answers`, async t => {
      const owner = `job:made-${killAfter}`
      const made = await killedDuring(killAfter, Array.from({ length: 30 }), async () => falls.makeKey(owner))
      const answered = made.flatMap(key => key !== null && typeof key === 'object' ? [key] : [])
      t.ok(answered.length >= killAfter && made.includes(null), `${answered.length} were answered`)
      for (const { key } of answered) t.strictSame([await stays.use(key), await falls.use(key)], [200, 200])
      const listed = (await auth.keys({ owner })).map(({ id }) => id)
      t.strictSame(answered.filter(({ id }) => !listed.includes(id)), [])
    })

    await t.test(`a key whose end a kill after ${killAfter} answers interrupts is whole or ended`, async t => {
      const owner = `job:ended-${killAfter}`
      const made = await Promise.all(Array.from({ length: 30 }, async () => auth.createKey({ owner, ...READ }, BY)))
      const isEnded = await killedDuring(killAfter, made, async ({ id }) => falls.endKey(id))
      const count = isEnded.filter(Boolean).length
      t.ok(count >= killAfter && count < made.length, `${count} ends were answered`)
      const listed = (await auth.keys({ owner })).map(({ id }) => id)
      for (const [index, { id, key }] of made.entries()) {
        const status = listed.includes(id) ? 200 : 401
        t.strictSame([await stays.use(key), await falls.use(key)], [status, status])
        if (isEnded[index] === true) t.equal(status, 401)
      }
    })
  }
}
