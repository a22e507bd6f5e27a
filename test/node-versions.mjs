/** The other supported versions of Node.js, which npm installs beside the dependencies. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const OTHER_VERSIONS = ['22', '26']

/** Installs a version of Node.js, and returns the folder of its command. */
export function installNode (version) {
  const folder = join(import.meta.dirname, '../node_modules/.cache', `node-${version}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }))
  run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', `node@${version}`], { cwd: folder })
  return join(folder, 'node_modules/.bin')
}

/** Runs a command that prints to this terminal, and ends the process where it fails. */
export function run (command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}
