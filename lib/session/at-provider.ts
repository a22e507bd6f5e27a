/** The sessions at providers in which sessions here began, as far as providers may end them. */
import { digestOf } from '../base/values.js'
import type { ProviderEnd, ProviderSession } from './store.js'

/** What a provider calls a session, and its user. */
export interface ProviderIds {
  /** Of the session. */
  readonly sid?: string | undefined
  /** Of the user. */
  readonly sub: string
}

/** Returns what a session keeps of the one at the provider: hashes alone. */
export function sessionAt (provider: string, { sid, sub }: ProviderIds, startedAt: number): ProviderSession {
  const session = sid === undefined ? {} : { session: hashOf(provider, 'sid', sid) }
  return { ...session, user: hashOf(provider, 'sub', sub), startedAt }
}

/** Returns what ends by a logout: one session at the provider, or all of the user there. */
export function endAt (provider: string, { sid, sub }: { readonly sid?: string, readonly sub?: string }): ProviderEnd {
  return sid === undefined
    ? { by: 'user', hash: hashOf(provider, 'sub', String(sub)) }
    : { by: 'session', hash: hashOf(provider, 'sid', sid) }
}

function hashOf (provider: string, claim: string, id: string): string {
  return digestOf(`${provider} ${claim} ${id}`)
}

/**
 * Whether a session has ended at its provider. Of a user, those end whose sign-in was started
 * before: a later one is a new session there.
 *
 * @param endedAt finds when what has a hash ended; null for what has not
 */
export async function hasEnded (
  { session, user, startedAt }: ProviderSession, endedAt: (hash: string) => Promise<number | null>
): Promise<boolean> {
  const [ofSession, ofUser] = await Promise.all([session === undefined ? null : endedAt(session), endedAt(user)])
  return ofSession !== null || (ofUser !== null && startedAt <= ofUser)
}
