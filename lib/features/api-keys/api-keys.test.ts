import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { emptyDatabase } from '../../../test/helpers/postgres.js'
import { type AuthPluginOptions, SqlAuthStore } from '../../index.js'
import { ApiKeys, type ApiKeysOptions } from './api-keys.js'
import { findKey } from './find-key.js'

const SCOPES = { 'notes:read': 'Read your notes', 'notes:write': { en: 'Change your notes', de: 'Notizen ändern' } }
const BY = { actor: 'test' }

interface KeysApp {
  app: FastifyInstance
  /** Finds the key of a text as a guard does; its owner or user, or null. */
  find (text: string): Promise<string | null>
  /** How many statements on keys were sent by `find`. */
  asked: { count: number }
}

async function startKeys (
  t: Test, options: Partial<ApiKeysOptions> = {}, others: AuthPluginOptions = {}, target = ':memory:'
): Promise<KeysApp> {
  const store = new SqlAuthStore(target)
  const apiKeys = new ApiKeys({ prefix: 'shop', scopes: SCOPES, ...options })
  const app = await startApp(t, { store, local: localProvider(), apiKeys, ...others })
  const asked = { count: 0 }
  const { featureTables } = store
  if (featureTables === undefined) throw new Error('the store has no tables of features')
  const part = apiKeys.resolve({
    async featureTables (name) {
      asked.count++
      return featureTables(name)
    }
  })
  const find = async (text: string) => {
    const found = await findKey(part, text, app.log)
    return found && (found.owner ?? found.userId)
  }
  return { app, find, asked }
}

const ENGINES: Record<string, (t: Test) => Promise<string>> = {
  Postgres: emptyDatabase, SQLite: async () => ':memory:'
}

for (const [engine, open] of Object.entries(ENGINES)) {
  t.test(`on ${engine}`, async t => {
    const { app, find, asked } = await startKeys(t, {}, {}, await open(t))
    const { userId } = await app.auth.createUser({ email: 'ada@example.com' })

    t.test('a key of a user is found by one statement, listed without its hash, and ended', async t => {
      const { id, key } = await app.auth.createKey({ userId, name: 'Laptop', scopes: ['notes:write', 'notes:read'] }, BY)

      asked.count = 0
      t.equal(await find(key), userId)
      const [listed] = await app.auth.keys({ userId })
      t.match(listed, { id, name: 'Laptop', scopes: ['notes:read', 'notes:write'], userId, owner: null, expiresAt: null })
      t.notHas(listed, 'hash')
      t.ok(await app.auth.endKey(id, BY))
      t.equal(await find(key), null)
      t.notOk(await app.auth.endKey(id, BY))
    })

    t.test('a key of an owner is found, and lists are those of one owner, the newest first', async t => {
      const made = []
      for (const name of ['one', 'two']) {
        made.unshift(await app.auth.createKey({ owner: 'job:nightly', name, scopes: ['notes:read'] }, BY))
      }
      t.equal(await find(made[0]?.key ?? ''), 'job:nightly')
      t.strictSame((await app.auth.keys({ owner: 'job:nightly' })).map(({ name }) => name).sort(), ['one', 'two'])
      t.strictSame(await app.auth.keys({ owner: 'job' }), [])
    })

    t.test('the keys of a user go with the user', async t => {
      const { userId } = await app.auth.createUser({ email: 'bob@example.com' })
      const { id, key } = await app.auth.createKey({ userId, name: 'Laptop', scopes: ['notes:read'] }, BY)
      await app.auth.deleteUser(userId)

      t.equal(await find(key), null)
      t.notOk(await app.auth.endKey(id, BY))
    })
  })
}
