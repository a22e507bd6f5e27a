import { PGlite } from '@electric-sql/pglite'
import { drizzle } from 'drizzle-orm/pglite'
import { testEngine } from './engine.js'

testEngine('Drizzle on PGlite', async t => {
  const client = await PGlite.create()
  t.teardown(() => client.close())
  return {
    target: () => drizzle(client),
    run: async statements => (await client.exec(statements)).at(-1)?.rows ?? []
  }
})
