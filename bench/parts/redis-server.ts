import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../../test/helpers/loopback.js'
import { temporaryFolder } from './temporary-folder.js'

export interface RedisServer {
  version: string
  url: string
  stop (): Promise<void>
}

/** A Redis server that writes each change to its file within a second, on this machine; null where none is installed. */
export async function redisServer (): Promise<RedisServer | null> {
  const { status, stdout } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' })
  if (status !== 0) return null
  const port = await freePort()
  const settings = ['--port', port, '--bind', '127.0.0.1', '--dir', temporaryFolder(), '--appendonly', 'yes', '--save', '']
  const server = spawn('redis-server', settings.map(String), { stdio: 'ignore' })
  while (!await accepts(port)) await wait(50)
  return {
    version: /v=(\S+)/.exec(stdout)?.[1] ?? '',
    url: `redis://127.0.0.1:${port}`,
    async stop () {
      server.kill()
      await once(server, 'exit')
    }
  }
}

async function accepts (port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
