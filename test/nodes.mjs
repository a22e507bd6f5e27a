/**
 * Runs tests on the other supported versions of Node.js, which npm installs beside the dependencies:
 *
 *     npm run test:nodes                    the everyday tests on all of them
 *     npm run test:nodes -- 22              on one
 *     npm run test:nodes -- --runtime 22    those of what differs between versions of Node.js
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { OTHER_VERSIONS, installNode, run } from './node-versions.mjs'

/** Native modules, processes, Unicode, URLs and HTTP. */
const RUNTIME = [
  'test/email.test.ts',
  'lib/features/second-factor/code-shape.test.ts',
  'test/http/redirects.test.ts',
  'test/start.test.ts',
  'lib/features/password/*.test.ts',
  'lib/features/tokens/*.test.ts',
  'test/providers/oidc.test.ts',
  'test/routes/*.test.ts',
  'test/security/input.test.ts',
  'test/store/report.test.ts',
  'test/store/sql-targets.test.ts',
  'test/store/sqlite*.test.ts'
]

const { values: { runtime }, positionals } = parseArgs({ options: { runtime: { type: 'boolean' } }, allowPositionals: true })
const files = runtime ? RUNTIME : []

for (const version of positionals.length > 0 ? positionals : OTHER_VERSIONS) {
  const bin = installNode(version)
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  console.log(`# Node.js ${version}`)
  run(join(bin, 'node'), ['--import', './test/typescript.mjs', 'test/run.ts', ...files], { env })
}
