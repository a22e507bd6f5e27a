import Sqlite13 from 'better-sqlite3'
import Sqlite12 from 'better-sqlite3-12'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import t, { type Test } from 'tap'
import { OptionsError, SqlAuthStore } from '../../lib/index.js'
import { incompatibility } from '../../lib/store/sqlite-compatibility.js'

/** Connections as each version of the class makes them. The binary of version 12 is not installed, so none is open. */
const connections = {
  12: Object.create(Sqlite12.prototype),
  13: Object.create(Sqlite13.prototype)
}

function runOn (t: Test, node: string): void {
  t.intercept(process, 'versions', { value: { ...process.versions, node } })
}

t.test('a version of better-sqlite3 that would crash the process is told from one that works', async t => {
  const works = (version: 12 | 13, node: string) => incompatibility(connections[version], node) === null

  t.strictSame(['20.20.2', '22.12.0', '24.18.1', '24.19.0', '24.21.0', '26.10.0'].map(node => [works(12, node), works(13, node)]), [
    [true, false],
    [true, true],
    [true, true],
    [false, true],
    [false, true],
    [false, true]
  ])
})

for (const [name, engineOn] of Object.entries({
  connection: (connection: Sqlite13.Database) => connection,
  'Drizzle database': (client: Sqlite13.Database) => drizzle({ client })
})) {
  t.test(`a ${name} whose first query would crash the process is refused with the version to install`, async t => {
    runOn(t, '24.19.0')
    t.throws(
      () => new SqlAuthStore(engineOn(connections[12])),
      new OptionsError('target cannot be used: better-sqlite3 before 13 crashes on Node.js 24.19.0; install it anew: npm install better-sqlite3@13')
    )
    t.doesNotThrow(() => new SqlAuthStore(engineOn(connections[13])))
  })
}

t.test('a file is not opened by a better-sqlite3 that would crash the process', async t => {
  runOn(t, '20.20.2')
  await t.rejects(new SqlAuthStore(':memory:').findUser({ email: 'ada@example.com' }), {
    code: 'unavailable',
    cause: { message: 'better-sqlite3 13 and later crash on Node.js 20.20.2; run Node.js 22 or later' }
  })
})
