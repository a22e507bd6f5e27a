import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Runs every bench beside this file, each in a process of its own, with the options given to this one. */

const folder = new URL('.', import.meta.url)
const benches = readdirSync(folder).filter(name => name.endsWith('.ts') && name !== basename(import.meta.url)).sort()

for (const bench of benches) {
  const { status } = spawnSync(process.execPath, [...process.execArgv, fileURLToPath(new URL(bench, folder)), ...process.argv.slice(2)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
