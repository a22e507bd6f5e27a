import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Makes a folder that is gone when the process ends, also when it is interrupted. */
export function temporaryFolder (): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-bench-'))
  process.once('exit', () => { rmSync(folder, { recursive: true, force: true }) })
  return folder
}
