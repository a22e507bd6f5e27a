import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import type { Factor } from '../../lib/accounts/account.js'
import { Accounts } from '../../lib/accounts/accounts.js'
import { AuthError } from '../../lib/errors.js'
import { NO_FACTORS } from '../helpers/no-factors.js'
import type { Identity } from '../../lib/providers/provider.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { newFactor, toFactors } from './users.js'
import { userOfIdentity } from '../../lib/features/identities/linking.js'

/** What a user does in a race. */
export type Move =
  | { does: 'sign in', provider: string, identity: Identity }
  | { does: 'register', email: string, password: string }
  | { does: 'grant', userId: string, claims: Record<string, number> }
  | { does: 'sign out everywhere', userId: string }
  | { does: 'attempt a factor', userId: string }
  | { does: 'add a factor', userId: string, id: string }
  | { does: 'spend a code', userId: string }
  | { does: 'delete', userId: string }

/** The user that it was done to, or the code of the error. */
export type Outcome = { userId: string } | { error: string }

/** An application with connections of its own to the database. */
export interface Racer {
  /** Makes all the moves at once. */
  run (moves: readonly Move[]): Promise<Outcome[]>
  end (): Promise<void>
}

export async function startRacer (target: string): Promise<Racer> {
  const app = Fastify()
  const store = new SqlAuthStore(target)
  await app.register(authPlugin, { store, local: localProvider(), session: { secret: SESSION_SECRET }, rateLimit: false })
  await app.ready()

  const auth = { accounts: new Accounts(store), linking: 'verified-email', ...NO_FACTORS } as const
  const run = async (move: Move): Promise<string> => {
    switch (move.does) {
      case 'sign in':
        return (await userOfIdentity(auth, {}, { provider: move.provider, ...move.identity })).user.userId
      case 'register': {
        const { email, password } = move
        const response = await app.inject({
          method: 'POST',
          url: '/auth/local/register',
          headers: { accept: 'application/json' },
          payload: { email, password }
        })
        const { userId, code }: Record<string, unknown> = response.json()
        if (response.statusCode !== 201) throw new Refusal(String(code))
        return String(userId)
      }
      case 'grant':
        await app.auth.grant(move.userId, move.claims)
        return move.userId
      case 'sign out everywhere':
        await app.auth.signOutEverywhere(move.userId)
        return move.userId
      case 'attempt a factor': {
        const attempt = await new Accounts(store).attemptFactor(move.userId, 0)
        if (attempt?.isRefused !== false) throw new Refusal(attempt?.isFirst === true ? 'told' : 'refused')
        return move.userId
      }
      case 'add a factor':
        await new Accounts(store).changeFactors(move.userId, toFactors(newFactor({ id: move.id })))
        return move.userId
      case 'spend a code': {
        const change = (factors: readonly Factor[]) =>
          factors.some(({ counter }) => counter > 0) ? null : factors.map(factor => ({ ...factor, counter: 1 }))
        const spent = await new Accounts(store).changeFactors(move.userId, { change, endsSessions: false })
        if (spent === null) throw new Refusal('spent')
        return move.userId
      }
      case 'delete':
        await new Accounts(store).deleteUser(move.userId)
        return move.userId
    }
  }
  return {
    run: moves => Promise.all(moves.map(async move => run(move).then(userId => ({ userId }), (error: unknown) => ({ error: codeOf(error) })))),
    end: () => app.close()
  }
}

class Refusal extends Error {}

function codeOf (error: unknown): string {
  if (error instanceof AuthError) return error.cause === undefined ? error.code : `${error.code}: ${String(error.cause)}`
  return error instanceof Refusal ? error.message : String(error)
}

// As a program: a racer on the database of its first argument, which runs what it is sent and ends when it is let go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const racer = await startRacer(String(process.argv[2]))
  process.on('message', async message => { process.send?.(await racer.run(message as Move[])) })
  process.once('disconnect', () => racer.end())
  process.send?.('ready')
}
