import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Format, build } from 'esbuild'
import t from 'tap'

const APP = fileURLToPath(new URL('bundled-app.ts', import.meta.url))

/** Packages with native modules, and a driver that this application does not use. */
const EXTERNAL = ['@node-rs/argon2', 'better-sqlite3', 'postgres']

/** Packages of Fastify call require(), which an ES module has only if it makes it. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

const FORMATS: Array<[format: Format, file: string, banner: string]> = [['esm', 'app.mjs', REQUIRE], ['cjs', 'app.cjs', '']]

for (const [format, file, banner] of FORMATS) {
  t.test(`an application that esbuild has bundled as ${format} registers a user and signs the user in`, async t => {
    const outfile = join(t.testdir(), file)
    const { warnings } = await build({
      entryPoints: [APP],
      outfile,
      format,
      bundle: true,
      platform: 'node',
      target: 'node22',
      external: EXTERNAL,
      banner: { js: banner },
      logLevel: 'silent'
    })
    t.strictSame(warnings.map(({ text }) => text), [])

    const { stdout } = await promisify(execFile)(process.execPath, [outfile, join(t.testdirName, 'users.db')])

    t.strictSame(JSON.parse(stdout), { registered: 201, signedIn: 200, email: 'ada@example.com' })
  })
}
