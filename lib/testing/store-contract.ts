import { Accounts } from '../accounts/accounts.js'
import type { AuthStore } from '../accounts/auth-store.js'
import { attemptsContract } from './store-contract/attempts.js'
import { revocationsContract } from './store-contract/revocations.js'
import { createHooksContract } from './store-contract/create-hooks.js'
import { deletionContract } from './store-contract/deletion.js'
import { entriesContract } from './store-contract/entries.js'
import { factorsContract } from './store-contract/factors.js'
import { guestsContract } from './store-contract/guests.js'
import { linksContract, signInsContract } from './store-contract/links.js'
import { listContract } from './store-contract/list.js'
import { changesOfUsersContract } from './store-contract/changes.js'
import type { Rule, Stores } from './store-contract/rule.js'
import { sessionsContract } from './store-contract/sessions.js'
import { usersContract } from './store-contract/users.js'
import { valuesContract } from './store-contract/values.js'

/** The function that adds a test: `test` of `node:test` and of vitest, `t.test` of tap. */
export type TestFunction = (name: string, check: () => Promise<void>) => unknown

/** Makes a store without data, or two over the same data, as two processes have them. */
export type MakeStore = () => AuthStore | Stores | Promise<AuthStore | Stores>

/**
 * Adds the tests that each store of the package passes, for a store of the application's own. The
 * tests may not run at the same time when they share a database. Each closes its stores at the end.
 * Those of an optional member such as `attempts` or `hookProblem` test nothing in a store without
 * it.
 *
 * @param test adds a test
 * @param makeStore called by each test. Two stores over the same data also test that one sees what
 * the other wrote, and that each method is atomic between processes.
 *
 * @example
 * ```ts
 * import { test } from 'node:test'
 *
 * authStoreContract(test, async () => {
 *   await database.query('delete from users')
 *   return { store: new OwnStore(database), twin: new OwnStore(database) }
 * })
 * ```
 */
export function authStoreContract (test: TestFunction, makeStore: MakeStore): void {
  const rule: Rule = (name, check) => {
    test(name, async () => {
      const opened: AuthStore[] = []
      try {
        await check(async () => {
          const made = await makeStore()
          const stores = 'twin' in made ? made : { store: made, twin: made }
          opened.push(stores.store, stores.twin)
          return { store: new Accounts(stores.store), twin: new Accounts(stores.twin), stores }
        })
      } finally {
        for (const store of new Set(opened)) await store.close()
      }
    })
  }
  for (const contract of CONTRACTS) contract(rule)
}

const CONTRACTS = [
  usersContract, createHooksContract, linksContract, signInsContract, changesOfUsersContract, factorsContract,
  deletionContract, guestsContract, listContract, valuesContract, sessionsContract, entriesContract, attemptsContract,
  revocationsContract
]
