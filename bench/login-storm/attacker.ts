import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Credentials, logIn } from '../../test/security/load-process.js'

/** How many logins were answered with each status. */
export type Outcomes = Record<string, number>

/** Logs in many times, from a process of its own, so that the one that measures has nothing else to do. */
export interface Attacker {
  /** @param atOnce how many logins are under way at any time */
  attack (origin: string, logins: Credentials[], atOnce: number): Promise<Outcomes>
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
    async attack (origin, logins, atOnce) {
      child.send({ origin, logins, atOnce })
      return message()
    }
  }
}

// As a program: makes the attack that it is sent, tells what came of it, and ends.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('message', async message => {
    const { origin, logins, atOnce } = message as { origin: string, logins: Credentials[], atOnce: number }
    const outcomes: Outcomes = {}
    const waiting = logins.values()
    await Promise.all(Array.from({ length: atOnce }, async () => {
      for (const login of waiting) {
        const { status } = await logIn(origin, login)
        outcomes[String(status)] = (outcomes[String(status)] ?? 0) + 1
      }
    }))
    process.send?.(outcomes)
    process.disconnect()
  })
  process.send?.('ready')
}
