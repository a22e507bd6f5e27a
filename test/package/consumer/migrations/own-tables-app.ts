import assert from 'node:assert/strict'
import { SqlAuthStore } from 'fastify-svc-auth'
import { withAda } from './with-ada.js'

const store = new SqlAuthStore(process.env.DATABASE_URL)
await withAda(store, async userId => {
  assert.equal((await store.findUser({ userId }))?.email, 'ada@example.com')
})
