import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SqlAuthStore } from '../../lib/index.js'

t.test('the driver of a database is loaded without opening the database', async t => {
  const file = join(t.testdir(), 'users.db')

  await new SqlAuthStore(file).preload()
  // No server listens there.
  await new SqlAuthStore('postgres://app@127.0.0.1:1/app').preload()

  t.notOk(existsSync(file))
})
