import assert from 'node:assert/strict'
import Database from 'better-sqlite3'
import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { Accounts, SqlAuthStore } from 'fastify-svc-auth'
import * as schema from './schema.js'
import { withAda } from '../with-ada.js'

const { notes, users } = schema
const client = new Database(process.env.DATABASE_URL)
const db = drizzle({ client, schema })
const store = new SqlAuthStore(db, { createTables: false })

await withAda(store, async userId => {
  await db.insert(notes).values({ text: 'buy milk', authorId: userId })

  const related = await db.query.notes.findMany({ columns: { text: true }, with: { author: { columns: { email: true } } } })
  assert.deepEqual(related, [{ text: 'buy milk', author: { email: 'ada@example.com' } }])
  const joined = await db.select({ text: notes.text, name: users.name }).from(notes).innerJoin(users, eq(users.userId, notes.authorId))
  assert.deepEqual(joined, [{ text: 'buy milk', name: 'Ada' }])

  await new Accounts(store).deleteUser(userId)
  assert.deepEqual(await db.select().from(notes), [])
})
client.close()
