import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { Documentation } from '../helpers/markdown.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { some } from '../helpers/thorough.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const APP = fileURLToPath(new URL('bundled-app.ts', import.meta.url))
const run = promisify(execFile)

/** What is installed where a bundle runs, and the database that it uses with that. */
const DATABASES: Array<[what: string, packages: string[], database: (t: Test, folder: string) => Promise<string[]>]> = [
  ['no database and no driver', [], async () => []],
  ['SQLite, without the driver of Postgres', ['better-sqlite3'], async (_, folder) => [join(folder, 'users.db')]],
  ['Postgres, without the driver of SQLite', ['postgres'], async t => [await emptyDatabase(t)]]
]

const commands = (await Documentation.read()).page('docs/deployment.md').blocks('sh')
  .filter(block => block.startsWith('esbuild '))
t.equal(commands.length, 2)

for (const command of some(commands, 2)) {
  const [, format = ''] = /--format=(\w+)/.exec(command) ?? []
  t.test(`the command of the documentation bundles an application as ${format}`, async t => {
    const folder = t.testdir()
    const start = format === 'esm' ? 'await main()' : 'main()'
    await writeFile(join(folder, 'app.ts'), `import { main } from ${JSON.stringify(APP)}\n${start}\n`)
    const path = `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`
    const { stderr } = await run('sh', ['-c', `${command.trim()} --log-level=warning`], { cwd: folder, env: { ...process.env, PATH: path } })
    t.equal(stderr, '')

    for (const [what, packages, database] of some(DATABASES, 3, 1)) {
      t.test(`it registers a user and signs the user in with ${what}`, async t => {
        const deployed = await deploy(t, join(folder, 'dist'), ['@node-rs/argon2', ...packages])
        const file = join(deployed, format === 'esm' ? 'app.mjs' : 'app.cjs')
        const { stdout } = await run(process.execPath, [file, ...await database(t, deployed)])
        t.strictSame(JSON.parse(stdout), { registered: 201, signedIn: 200, email: 'ada@example.com' })
      })
    }
  })
}

/** Copies a bundle to a folder outside the repository, where no other packages are installed. */
async function deploy (t: Test, bundle: string, packages: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-bundle-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await cp(bundle, folder, { recursive: true })
  for (const name of packages) {
    const place = join(folder, 'node_modules', name)
    await mkdir(dirname(place), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), place)
  }
  return folder
}
