/**
 * What a user gets: packs the library, lets two linters look at the tarball, installs it in an empty TypeScript project, compiles a small
 * strict application without skipLibCheck, and runs it as ES module, as CommonJS and without rights; then does there what docs/migrations.md says about
 * migrations, on both databases, and runs the numbered examples.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { checkCommand } from './command.mjs'
import { ofSchemas, writeExports } from './declarations.mjs'
import { copyExamples, runExamples } from './examples.mjs'
import { checkOwnMigrations, checkSharedMigrations, postgresDatabase, sqliteDatabase } from './migrations.mjs'
import { withDatabases } from './postgres.mjs'
import { ROOT, run, withProject } from './project.mjs'

/** Mounts a project read-only but for its folder of data, and runs a command there as a user without rights. */
const READ_ONLY = `
  mount --bind "$0" "$0"; mount --bind "$1" "$1"; mount -o remount,ro,bind "$0"
  if touch "$0/written" 2> /dev/null; then exit 1; fi
  cd "$0"; shift
  exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
`

/** Runs an application as docs/deployment.md has it in a container: as a user who reads it, and writes one folder. */
async function runRestricted (project, app) {
  const data = project.path('data')
  await mkdir(data)
  await chmod(project.path('.'), 0o755)
  await chmod(data, 0o777)
  // Node.js 25 asks for the network too.
  const network = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []
  const permissions = [`--allow-fs-read=${project.path('.')}`, `--allow-fs-write=${data}`, '--allow-addons', ...network]
  const command = [process.execPath, '--permission', ...permissions, app]
  const env = { LOCAL_AUTH_DB: join(data, 'users.db') }
  const isRoot = process.getuid() === 0
  const mayMount = isRoot && await run('unshare', ['--mount', 'true'], { cwd: ROOT }).then(() => true, () => false)
  // Then the rights of the user alone keep the application from writing.
  if (!mayMount) return project.run(command[0], command.slice(1), { env, ...(isRoot && { uid: 65534, gid: 65534 }) })
  return project.run('unshare', ['--mount', 'sh', '-euc', READ_ONLY, project.path('.'), data, ...command], { env })
}

await withProject(async project => {
  console.log((await run('publint', ['run', project.tarball, '--strict'], { cwd: ROOT })).trim())
  // The profile passes over TypeScript's resolution for Node.js 10, which knows no exports. The
  // rule is about require() of an ES module, which each supported Node.js can do.
  await run('attw', [project.tarball, '--profile', 'node16', '--ignore-rules', 'cjs-resolves-to-esm'], { cwd: ROOT })

  await project.install('fastify-svc-auth', 'fastify', 'typescript', '@types/node', 'better-sqlite3')
  await writeExports(project, 'members', name => !ofSchemas(name))
  await project.compile('.')
  assert(!existsSync(project.path('node_modules', 'drizzle-orm')), 'the store has its own copy of Drizzle')
  for (const app of ['app.js', 'app.cjs', 'typed.cjs', 'notes.test.js']) console.log((await project.run('node', [app])).trim())
  console.log(`restricted: ${(await runRestricted(project, 'app.js')).trim()}`)
  await checkCommand(project, project.path('command.db'))

  await project.install('drizzle-orm', 'drizzle-kit', 'postgres', '@types/better-sqlite3', 'nodemailer', '@types/nodemailer')
  console.log((await project.run('node', ['schemas.cjs'])).trim())
  // Many declarations of drizzle-orm are for databases that are not installed here, or do not compile at all.
  await project.compile('migrations', { passOver: ['node_modules/drizzle-orm/'] })
  await writeExports(project, 'schemas', ofSchemas)
  for (const folder of ['schemas', 'isolated']) await project.compile(folder, { passOver: ['node_modules/drizzle-orm/'] })
  await copyExamples(project)
  await project.compile('examples', { passOver: ['node_modules/drizzle-orm/'] })
  await checkSharedMigrations(project, sqliteDatabase(project.path('shared.db')))
  await checkOwnMigrations(project, sqliteDatabase(project.path('own.db')))
  await withDatabases(4, async (shared, own, notes, command) => {
    await checkCommand(project, command)
    await runExamples(project, notes)
    await checkSharedMigrations(project, postgresDatabase(shared))
    await checkOwnMigrations(project, postgresDatabase(own))
  })
})
