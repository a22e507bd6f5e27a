import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './loopback.js'
import { isSoon } from './soon.js'

/** Debian has it where only root looks. */
const PATH = `${process.env.PATH}:/usr/sbin`

/** Whether nginx is installed. */
export function hasNginx (): boolean {
  try {
    execFileSync('nginx', ['-v'], { env: { PATH }, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Starts nginx in front of an application, with these directives, and resolves to its origin. */
export async function startNginx (t: Test, upstream: string, directives: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-nginx-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/${name};`)
  writeFileSync(file, `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr warn;
events {}
http {
  access_log off;
  ${paths.join('\n  ')}
  proxy_cache_path ${folder}/cache keys_zone=shared:1m;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${upstream};
      proxy_set_header Host $http_host;
      ${directives}
    }
  }
}
`)
  const nginx = spawn('nginx', ['-p', folder, '-c', file], { env: { PATH }, stdio: 'ignore' })
  t.teardown(async () => {
    if (nginx.exitCode === null) {
      nginx.kill('SIGKILL')
      await once(nginx, 'exit')
    }
    rmSync(folder, { recursive: true })
  })
  const origin = `http://127.0.0.1:${port}`
  if (!await isSoon(async () => fetch(origin).then(() => true, () => false))) throw new Error('nginx did not start')
  return origin
}
