import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Credentials, logIn } from '../../test/security/load-process.js'

/** How many logins were answered with each status. */
export type Outcomes = Record<string, number>

/** Logs in many times at once, from a process of its own, so that the one that measures has nothing else to do. */
export interface Attacker {
  attack (origin: string, logins: Credentials[]): Promise<Outcomes>
}

export async function startAttacker (): Promise<Attacker> {
  const child = fork(fileURLToPath(import.meta.url), { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const message = async () => {
    const [message] = await Promise.race([once(child, 'message'), exited.then(([code]) => { throw new Error(`the attacker ended with ${code}`) })])
    return message
  }
  await message()
  return {
    async attack (origin, logins) {
      child.send({ origin, logins })
      return message()
    }
  }
}

// As a program: makes the attack that it is sent, tells what came of it, and ends.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('message', async message => {
    const { origin, logins } = message as { origin: string, logins: Credentials[] }
    const outcomes: Outcomes = {}
    await Promise.all(logins.map(async login => {
      const { status } = await logIn(origin, login)
      outcomes[String(status)] = (outcomes[String(status)] ?? 0) + 1
    }))
    process.send?.(outcomes)
    process.disconnect()
  })
  process.send?.('ready')
}
