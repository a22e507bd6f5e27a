import type { Factor, FactorKind } from '../accounts/account.js'
import type { Accounts } from '../accounts/accounts.js'

/** A second factor or a passkey of a user, without its secret. */
export interface UserFactor {
  /** Names the factor; for a passkey its credential id. */
  id: string
  /** `totp`: an authenticator app; `recovery`: all recovery codes. */
  kind: FactorKind
  /** The name that the user has given; null for one without a name. */
  name: string | null
  /** When it was added. */
  createdAt: Date
  /** Null for one that was not used. */
  lastUsedAt: Date | null
  /** How many recovery codes are left; null for another kind. */
  codesLeft: number | null
}

/** Lists the factors of a user, the oldest first. */
export async function listFactors (accounts: Accounts, userId: string): Promise<UserFactor[]> {
  return (await accounts.factors(userId)).map(({ id, kind, name, createdAt, usedAt, data }) => ({
    id,
    kind,
    name,
    createdAt: new Date(createdAt),
    lastUsedAt: usedAt === null ? null : new Date(usedAt),
    codesLeft: kind === 'recovery' ? hashesIn(data).length : null
  }))
}

/** The hashes of the recovery codes that were not used. */
export function hashesIn ({ hashes }: Factor['data']): string[] {
  return Array.isArray(hashes) ? hashes : []
}
