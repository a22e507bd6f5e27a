import type { Accounts } from '../../accounts/accounts.js'
import type { AuthStore } from '../../accounts/auth-store.js'

/** Two stores over the same data, empty at first, each with a connection of its own if possible. */
export interface Stores {
  /** A store without data. */
  store: AuthStore
  /** A second store, as in another process of the application; it may be the same object. */
  twin: AuthStore
}

/** The operations on the accounts of the stores, and the stores themselves. */
export interface Opened {
  store: Accounts
  twin: Accounts
  stores: Stores
}

/** Adds a test of the contract. Each `open()` makes stores without data, closed after the test. */
export type Rule = (name: string, check: (open: () => Promise<Opened>) => Promise<void>) => void

/** A {@link Rule} about the operations on accounts alone, on stores that are open already. */
export type AccountsRule = (name: string, check: (store: Accounts, twin: Accounts) => Promise<void>) => void

/** Returns how tests about the operations on accounts are added. */
export function onAccounts (rule: Rule): AccountsRule {
  return (name, check) => {
    rule(name, async open => {
      const { store, twin } = await open()
      await check(store, twin)
    })
  }
}
