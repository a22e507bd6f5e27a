/**
 * The schema against the shipped migrations: `drizzle-kit generate` must have nothing to write. Its exit code does not tell: that is 0 too
 * when it has written something, and when it would have to ask whether a column was renamed. It runs on a copy, so that nothing is left behind.
 */
import assert from 'node:assert/strict'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT, run } from './project.mjs'

const copy = await mkdtemp(join(tmpdir(), 'svc-auth-migrations-'))
try {
  for (const name of ['package.json', 'lib', 'drizzle']) await cp(join(ROOT, name), join(copy, name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  for (const config of ['drizzle/postgres.config.ts', 'drizzle/sqlite.config.ts']) {
    assert.match(await run('drizzle-kit', ['check', '--config', config], { cwd: copy }), /Everything's fine/)
    assert.match(
      await run('drizzle-kit', ['generate', '--config', config], { cwd: copy }),
      /No schema changes/,
      `the schema differs from the migrations: npm run migrations (${config})`
    )
  }
} finally {
  await rm(copy, { recursive: true, force: true })
}
