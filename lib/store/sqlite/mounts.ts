import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Returns a warning for a file that is mounted alone, as into a container: its log is not kept. */
export async function mountWarnings (file: string): Promise<string[]> {
  try {
    const path = await realpath(file)
    return await isMountPoint(path)
      ? [`${path} is mounted without its folder, so its log (-wal) is lost with the container, and committed users ` +
        'with it: mount the folder in place of the file']
      : []
  } catch {
    // There is no file, or the process may not look.
    return []
  }
}

async function isMountPoint (path: string): Promise<boolean> {
  if (process.platform !== 'linux') return (await stat(path)).dev !== (await stat(dirname(path))).dev
  // A bind mount has the device of its folder, and a file of an overlay another one.
  const escaped = path.replace(/[ \t\n\\]/g, character => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  return mounts.split('\n').some(mount => mount.split(' ')[4] === escaped)
}
