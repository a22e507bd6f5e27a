/** What tests of the rules of accounts share; the fixtures of the contract of stores are theirs too. */
import { Accounts } from '../../lib/accounts/accounts.js'
import type { LinkedIdentity } from '../../lib/accounts/identities.js'
import { MemoryAuthStore } from '../../lib/index.js'
import { verified } from '../../lib/testing/store-contract/fixtures.js'

/** The accounts of an empty store. */
export function newAccounts (): Accounts {
  return new Accounts(new MemoryAuthStore())
}

export const INVALID_EMAIL = { name: 'AuthError', code: 'invalid_email', statusCode: 400 }

/** Reports that do not vouch for ada@example.com. Another user has taken@example.com. */
export const NO_LONGER_VOUCHED: ReadonlyArray<readonly [string, Pick<LinkedIdentity, 'claims' | 'verifiedEmail'>]> = [
  ['it as unverified', { claims: { sub: 'x', email: 'ada@example.com', email_verified: false }, verifiedEmail: null }],
  [
    'it in the claims alone',
    { claims: { sub: 'x', email: 'ada@example.com', email_verified: true }, verifiedEmail: null }
  ],
  ['no e-mail', { claims: { sub: 'x' }, verifiedEmail: null }],
  ['the e-mail of another user', verified('taken@example.com')]
]
