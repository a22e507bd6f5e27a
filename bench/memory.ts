import { join } from 'node:path'
import { ADA, PATHS } from './login/ada.js'
import { machine } from './parts/machine.js'
import { benchOptions } from './parts/options.js'
import { CONNECTIONS } from './parts/rivals.js'
import { type Server, ask, startServer } from './parts/server.js'
import { figure, table } from './parts/table.js'
import { temporaryFolder } from './parts/temporary-folder.js'

/** Shows whether an application that signs people in grows: its heap, after a forced collection, as sign-ins become more. */

const { isShort } = benchOptions()
const STEP = isShort ? 100 : 10_000
const STEPS = isShort ? 2 : 10

const MIB = 2 ** 20

console.log(`${machine('fastify', '@fastify/session', 'better-sqlite3')}\n`)
const folder = temporaryFolder()
const heaps = {
  'sessions in a database': await growth(join(folder, 'users-1.db')),
  'sessions in memory': await growth(join(folder, 'users-2.db'), 'memory')
}
const rows = Array.from({ length: STEPS + 1 }, (_, step) => [String(step * STEP), ...Object.values(heaps).map(heap => figure((heap[step] ?? NaN) / MIB))])
console.log(table(['sign-ins', ...Object.keys(heaps).map(title => `MiB, ${title}`)], rows) + '\n')

/** Bytes of heap that are in use: before, and after each step. */
async function growth (...databases: string[]): Promise<number[]> {
  const server = await startServer(new URL('memory/server.ts', import.meta.url), 'application', ...databases)
  try {
    await logIn(server, STEP) // Warms up.
    const heap = [await heapOf(server)]
    for (let step = 0; step < STEPS; step++) {
      await logIn(server, STEP)
      heap.push(await heapOf(server))
    }
    return heap
  } finally {
    await server.end()
  }
}

async function logIn (server: Server, times: number): Promise<void> {
  let left = times
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    while (left-- > 0) {
      const { status } = await ask(server, { method: 'POST', path: PATHS['fastify-svc-auth'].login, headers: { accept: 'application/json', 'content-type': 'application/json' }, body: JSON.stringify(ADA) })
      if (status !== 200) throw new Error(`expected a login, got ${status}`)
    }
  }))
}

async function heapOf (server: Server): Promise<number> {
  return Number((await ask(server, { method: 'GET', path: '/heap' })).text)
}
