/** An SQLite file that is mounted into a container without its folder, which keeps SQLite's log of it. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'

const run = promisify(execFile)

/** Node.js as it is: tap adds loaders to the environment, which read what some processes here may not. */
const NODE = ['env', '-i', process.execPath, '--import', new URL('../typescript.mjs', import.meta.url).href]

/** Runs a program where a path is mounted at another one, for this program alone. */
const mounted = async (source: string, target: string, program: string[]) =>
  run('unshare', ['--map-root-user', '--mount', 'sh', '-c', 'mount --bind "$0" "$1" && shift && exec "$@"', source, target, ...program])

const refused = await mounted('/dev/null', '/dev/zero', ['true']).then(() => false, (error: Error) => error.message)

t.test('attack 167: an SQLite file that is mounted without its folder is one warning, with what to do', { skip: refused }, async t => {
  const { outside, inside } = folders(t)
  const name = 'a name with blanks and a \\.db'
  for (const folder of [outside, inside]) writeFileSync(join(folder, name), '')
  symlinkSync(join(inside, name), join(inside, 'link.db'))

  for (const opened of [[join(inside, 'link.db')], [join(inside, name), 'application']]) {
    t.strictSame(await reported(join(outside, name), join(inside, name), opened), [[`${join(inside, name)} is mounted without its folder, ` +
      'so its log (-wal) is lost with the container, and committed users with it: mount the folder in place of the file']])
  }
})

t.test('where the system has no list of mounts, a file on another device than its folder is one', { skip: refused }, async t => {
  const { inside } = folders(t)
  const outside = mkdtempSync('/dev/shm/')
  t.teardown(() => { rmSync(outside, { recursive: true }) })
  for (const folder of [outside, inside]) writeFileSync(join(folder, 'users.db'), '')
  const file = join(inside, 'users.db')

  t.match(await reported(join(outside, 'users.db'), file, [file, 'darwin']), [[/mount the folder in place of the file$/]])
  t.strictSame(await reported(outside, inside, [file, 'darwin']), [])
})

t.test('an SQLite file that is mounted with its folder is no warning', { skip: refused }, async t => {
  const { outside, inside } = folders(t)

  t.strictSame(await reported(outside, inside, [join(inside, 'users.db')]), [])
})

t.test('a process that may not read its mounts opens the file, without a warning', { skip: refused }, async t => {
  const { outside, inside } = folders(t)
  for (const folder of [outside, inside]) writeFileSync(join(folder, 'users.db'), '')
  const limits = ['--permission', '--allow-addons', '--allow-worker', `--allow-fs-write=${inside}`]
  const project = join(import.meta.dirname, '../..')
  const reads = [project, inside].map(path => `--allow-fs-read=${path}`)
  const file = join(inside, 'users.db')

  t.strictSame(await reported(join(outside, 'users.db'), file, [file], [...limits, ...reads]), [])
  const withMounts = [...reads, '--allow-fs-read=/proc/self/mountinfo']
  const warning = [[/mount the folder in place of the file$/]]
  t.match(await reported(join(outside, 'users.db'), file, [file], [...limits, ...withMounts]), warning, 'one that may warns')
})

t.test('an SQLite file on a full disk is one line with what to do, before a request', { skip: refused }, async t => {
  const { inside } = folders(t)
  const program = [...NODE, join(import.meta.dirname, 'report-process.ts'), join(inside, 'users.db')]
  const full = 'mount -t tmpfs -o size=8k tmpfs "$0" && exec "$@"'
  const { stdout } = await run('unshare', ['--map-root-user', '--mount', 'sh', '-c', full, inside, ...program])

  t.match(stdout, /disk I\/O error; make room on the disk, or /)
})

function folders (t: Test): { outside: string, inside: string } {
  const folder = t.testdir({ outside: {}, inside: {} })
  return { outside: join(folder, 'outside'), inside: join(folder, 'inside') }
}

/** What a store reports on a file, in a process where a path is mounted. */
async function reported (source: string, target: string, opened: string[], flags: string[] = []): Promise<unknown[]> {
  const program = [...NODE, ...flags, join(import.meta.dirname, 'report-process.ts'), ...opened]
  const { stdout } = await mounted(source, target, program)
  return stdout.split('\n').filter(line => line !== '').map(line => JSON.parse(line))
}
