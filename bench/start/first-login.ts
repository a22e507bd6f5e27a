import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { ADA } from '../login/ada.js'
import { median, shuffled } from '../parts/measure.js'
import { figure } from '../parts/table.js'

/** Where each application takes e-mail and password, by the name of its module. */
const LOGIN_PATHS = { 'fastify-svc-auth': '/auth/local/login', passport: '/login', 'better-auth': '/api/auth/sign-in/email' }

const PROGRAM = fileURLToPath(new URL('login.mjs', import.meta.url))

/** What was seen of one start, in milliseconds and MiB. */
interface Seen {
  listening: number
  answered: number
  held: number
  memory: number
}

/**
 * Starts each application again and again, in turns, and logs in as soon as it listens.
 *
 * @param createDatabase makes an empty database
 * @returns a row of a table for each application, of medians
 */
export async function firstLogins (node: string, rounds: number, createDatabase: () => Promise<string>): Promise<string[][]> {
  const applications = await Promise.all(Object.entries(LOGIN_PATHS).map(async ([name, path]) => {
    const database = await createDatabase()
    const [code] = await once(start(node, name, database, 'fill'), 'exit')
    if (code !== 0) throw new Error(`${name} ended with ${code}`)
    return { name, path, database, seen: new Array<Seen>() }
  }))
  for (let round = 0; round < rounds; round++) {
    for (const { name, path, database, seen } of shuffled(applications)) seen.push(await firstLogin(() => start(node, name, database), path))
  }
  return applications.map(({ name, seen }) => {
    const of = (measure: keyof Seen): string => figure(median(seen.map(one => one[measure])))
    return [name, of('listening'), of('answered'), of('held'), of('memory')]
  })
}

function start (node: string, ...args: string[]): ChildProcess {
  return fork(PROGRAM, args, { execPath: node, execArgv: [] })
}

async function firstLogin (start: () => ChildProcess, path: string): Promise<Seen> {
  const begin = performance.now()
  const child = start()
  const exited = once(child, 'exit')
  const message = async (): Promise<unknown> => {
    const [message]: unknown[] = await Promise.race([once(child, 'message'), exited.then(([code]) => { throw new Error(`it ended with ${code}`) })])
    return message
  }
  const ask = async (question: string): Promise<number> => {
    const answer = message()
    child.send(question)
    return Number(await answer)
  }
  const origin = await message()
  const listening = performance.now()
  const { statusCode, body } = await request(new URL(path, String(origin)), {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(ADA)
  })
  const text = await body.text()
  const answered = performance.now()
  if (statusCode !== 200 || !text.includes(ADA.email)) throw new Error(`expected a login, got ${statusCode}: ${text}`)
  const held = await ask('held')
  await setTimeout(1000)
  const memory = await ask('memory')
  child.disconnect()
  await exited
  return { listening: listening - begin, answered: answered - listening, held, memory }
}
