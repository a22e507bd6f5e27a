import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const ROOT = join(import.meta.dirname, '../..')

/** How the command line starts: `npx fastify-svc-auth`. */
export const COMMAND = [process.execPath, '--import', join(ROOT, 'test/typescript.mjs'), join(ROOT, 'lib/command/main.ts')]

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs the command line as a process of its own, with these settings and nothing else in its environment. */
export async function command (args: readonly string[], settings: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return ended([...COMMAND, ...args], settings)
}

/** Runs a program likewise, and resolves when it has ended. */
export async function ended (program: readonly string[], settings: Readonly<Record<string, string>>): Promise<Ended> {
  // env -i, not the option env: tap adds its loaders to that.
  const environment = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const child = spawn('env', ['-i', ...environment, ...program], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, stdout, stderr }
}
