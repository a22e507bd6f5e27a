import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { emptyDatabase } from '../helpers/postgres.js'
import { isThorough } from '../helpers/thorough.js'
import { ExampleProcess, settingsFor, startExample } from './example-process.js'
import { Visitor } from './visitor.js'

const TARGETS: Record<string, (t: Test) => Promise<string>> = {
  'an SQLite file': async t => join(t.testdir(), 'users.db'),
  'a sqlite: URL': async t => `sqlite://${join(t.testdir(), 'users.db')}`,
  'a file: URL': async t => pathToFileURL(join(t.testdir(), 'the users.db')).href,
  Postgres: emptyDatabase
}

// The store's own tests open all of them.
for (const [name, targetOf] of Object.entries(TARGETS).filter(([name]) => isThorough || ['an SQLite file', 'Postgres'].includes(name))) {
  t.test(`the admin page lists the users in ${name} by e-mail`, async t => {
    const settings = { ...await settingsFor(t), LOCAL_AUTH_DB: await targetOf(t) }
    const url = `http://localhost:${settings.PORT}`
    await startExample(t, settings)
    const people = await Promise.all(['bob', 'ada'].map(async name => {
      const visitor = new Visitor()
      await visitor.open(url)
      await visitor.press('Register', { name, email: `${name}@example.com`, password: 'correct horse' })
      return visitor
    }))

    t.equal(await new ExampleProcess(t, ['grant.ts', 'bob@example.com', 'role=admin'], settings).end(), 0)
    const admin = await people[0]?.open(`${url}/admin`)
    t.match(admin?.text, /ada@example\.com<\/strong>[^<]*<br>ada[^]*bob@example\.com<\/strong> <span class="tag">admin<\/span>\s*<br>bob/)
  })
}
