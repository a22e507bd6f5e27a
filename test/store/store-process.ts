import { Accounts } from '../../lib/accounts/accounts.js'
import { AuthError } from '../../lib/errors.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'

/** An operation on the accounts of the store, and its arguments. */
export type Call = { [M in keyof Accounts]: [method: M, ...args: Parameters<Accounts[M]>] }[keyof Accounts]

export type Answer = { result: unknown } | { error: { code: string, cause: string } }

// A process of its own with a store on the target that is its first argument. It does what it is told, and ends when it is let go.
if (process.send !== undefined) {
  const store = new SqlAuthStore(process.argv[2])
  process.on('message', async message => { process.send?.(await answerTo(new Accounts(store), message as Call)) })
  process.once('disconnect', async () => { await store.close() })
  process.send('ready')
}

async function answerTo (accounts: Accounts, [method, ...args]: Call): Promise<Answer> {
  try {
    const result: unknown = await Reflect.apply(accounts[method], accounts, args)
    return { result }
  } catch (error) {
    const { code, cause } = error instanceof AuthError ? error : { code: 'not an AuthError', cause: error }
    return { error: { code, cause: String(cause) } }
  }
}
