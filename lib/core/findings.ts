import type { User } from '../accounts/account.js'
import type { NewUser } from '../accounts/identities.js'
import type { SignInChange } from '../accounts/sign-in.js'
import type { AuthenticationContext, AuthenticationMethod } from '../authentication.js'
import type { ProviderIdentity } from '../hooks.js'
import type { ProviderTokens } from '../providers/provider.js'
import type { SessionRecord } from '../session/record.js'
import type { Outbox } from './mail-links.js'

/** What a first factor has found of a user: it travels from the proof to the write. */
export interface Findings {
  user: User
  /** Whether this sign-in created the user, or the link alone. */
  isNew: 'user' | 'link' | false
  /** What a second factor may be due for before it is written; null once it is. */
  held: SignInChange['held']
  /** The user whom a guest becomes: see {@link SignInChange}. */
  newUser?: NewUser | undefined
  identity: ProviderIdentity
  method: AuthenticationMethod
  /** Null without an external provider. */
  tokens: ProviderTokens | null
  /** What a signed ID token says about how they authenticated there; absent without one. */
  signed?: AuthenticationContext | undefined
  remember: boolean
  /** Where notices of what the sign-in writes go; null for none. */
  outbox: Outbox | null
  /** What the session keeps of the callback, and for sign-outs at the provider. */
  ofCallback?: Pick<SessionRecord, 'callback' | 'signOutHint' | 'atProvider'> | undefined
  /** Whether the application spares them the second factor. */
  skipsFactor?: boolean
}
