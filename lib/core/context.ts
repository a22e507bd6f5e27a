import type { onRequestAsyncHookHandler } from 'fastify'
import type { AuthChannel } from '../audit.js'
import { AuthError } from '../errors.js'
import type { ResolvedOptions } from '../options.js'
import type { PageLayout } from './pages/layout.js'
import type { PasskeyPaths } from '../features/passkeys/form.js'
import type { Sealer } from '../sealed.js'
import type { OneTimeEntries, StoreCapabilities } from '../session/store.js'
import type { RateLimits } from './limits.js'
import type { Mailer } from './mailer.js'
import type { PublishedResources } from './published-resources.js'

/** What becomes a part of the context, or is used up when that is made. */
type Ingredients = 'dataSecrets' | 'layout' | 'rateLimit' | 'session' | 'signOutSecrets' | 'store'

/** What acts, guards and hooks work with. Parts that no option asks for are null. */
export interface AuthContext extends Omit<ResolvedOptions, Ingredients> {
  /** What the store keeps besides accounts. */
  readonly capabilities: StoreCapabilities
  /** Keeps the records of a use: the entries of the store, else those of this application. */
  readonly records: OneTimeEntries
  /** Seals ID tokens in sessions; null where no provider has `signOut`. */
  readonly signOutSealer: Sealer | null
  /** `app.auth.channel`. */
  readonly channel: AuthChannel
  /** Redirects a navigation on another host to `baseUrl`. */
  readonly redirectToBaseUrl: onRequestAsyncHookHandler
  /** How pages of the plugin, of steps and of links look. */
  readonly layout: PageLayout | null
  /** Whether the option `pages` is given. */
  readonly hasPages: boolean
  /** Where forms lead, as browsers see it, by the path below the prefix: of mounted acts alone. */
  readonly formPaths: Map<string, string>
  readonly passkeyPaths: PasskeyPaths | null
  readonly limits: RateLimits
  /** The metadata that guards publish. */
  readonly resources: PublishedResources
  readonly mailer: Mailer | null
}

/** Whether the application has passwords and tokens. */
export function hasLocal ({ local }: AuthContext): boolean {
  return local !== null
}

/** Whether users sign in by a password. */
export function hasPasswords ({ local }: AuthContext): boolean {
  return local?.hasPasswords === true
}

/** Whether users sign in by mail. */
export function hasMailSignIn ({ local, mailer }: AuthContext): boolean {
  return mailer !== null && local?.signInByMail != null
}

/** Whether the application has authenticator apps and recovery codes. */
export function hasSecondFactor ({ factors: { secondFactor } }: AuthContext): boolean {
  return secondFactor !== null
}

export function hasPasskeys ({ factors: { passkeys } }: AuthContext): boolean {
  return passkeys !== null
}

/** Whether the sign-in page lets browsers make passkeys by themselves. */
export function createsPasskeys ({ hasPages, factors: { passkeys } }: AuthContext): boolean {
  return hasPages && passkeys?.relyingParty.createOnSignIn === true
}

export function hasFactors ({ factors: { secondFactor, passkeys } }: Pick<AuthContext, 'factors'>): boolean {
  return secondFactor !== null || passkeys !== null
}

/** Whether the application has the routes that need mails. */
export function hasMails ({ local, mailer }: AuthContext): boolean {
  return mailer !== null && local !== null
}

/** Returns a part of the context, or throws `unavailable` with the option that it comes from. */
export function needed<T> (part: T | null, option: string): T {
  if (part !== null) return part
  throw new AuthError('unavailable', { cause: new Error(`this process lacks the option ${option}: set it everywhere`) })
}

/** Returns what seals a sign-in that waits; without it no sign-in can wait: `unavailable`. */
export function sealerOf ({ factors: { sealer } }: AuthContext): Sealer {
  return needed(sealer, 'dataSecret, or the setting SVC_AUTH_DATA_SECRET')
}
