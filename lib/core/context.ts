import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { Accounts } from '../accounts/accounts.js'
import type { AuthChannel } from '../audit.js'
import { AuthError } from '../errors.js'
import type { PasskeyPaths } from '../features/passkeys/form.js'
import type { Passkeys } from '../features/passkeys/passkeys.js'
import type { SecondFactor } from '../features/second-factor/second-factor.js'
import type { DeleteHook, LinkHook, LinkingPolicy, SignInHook } from '../hooks.js'
import type { ExternalProvider } from '../providers/provider.js'
import type { Sealer } from '../sealed.js'
import type { OneTimeEntries, StoreCapabilities, StoredSessions } from '../session/store.js'
import type { RateLimits } from './limits.js'
import type { MailTokens } from './mail-links.js'
import type { MailPages } from './mail.js'
import type { Mailer } from './mailer.js'
import type { PageLayout } from './pages/layout.js'
import type { PublishedResources } from './published-resources.js'
import type { RedirectPages } from './redirect-pages.js'
import type { Site } from './site.js'

/**
 * What acts, guards and hooks work with, made once from the options. Parts that no option asks for
 * are null. Parts that only features use are declared by them.
 */
export interface AuthContext {
  readonly accounts: Accounts
  /** What the store keeps besides accounts. */
  readonly capabilities: StoreCapabilities
  /** Keeps the records of a use: the entries of the store, else those of this application. */
  readonly records: OneTimeEntries
  /** The sessions beside the users; null where a session store of the application has them. */
  readonly listedSessions: StoredSessions | null
  /** The lifetime of a remembered session in milliseconds; null where users are not asked. */
  readonly remember: number | null
  /** `app.auth.channel`. */
  readonly channel: AuthChannel
  readonly site: Site
  readonly prefix: string
  readonly redirects: RedirectPages
  /** Redirects a navigation on another host to `baseUrl`. */
  readonly redirectToBaseUrl: onRequestAsyncHookHandler
  readonly limits: RateLimits
  /** The metadata that guards publish. */
  readonly resources: PublishedResources
  readonly linking: LinkingPolicy
  readonly onSignIn: SignInHook | null
  readonly onLink: LinkHook | null
  readonly onDelete: DeleteHook | null
  readonly providers: readonly ExternalProvider[]
  /** Seals ID tokens in sessions; null where no provider has `signOut`. */
  readonly signOutSealer: Sealer | null
  readonly passwords: PasswordQueue | null
  /** The other methods by which users sign in. */
  readonly offers: { readonly password: boolean, readonly mail: boolean }
  /** What this process can ask for; the sealer seals what waits for a factor. */
  readonly factors: {
    readonly secondFactor: ReturnType<SecondFactor['rulesWith']> | null
    readonly passkeys: ReturnType<Passkeys['resolve']> | null
    readonly sealer: Sealer | null
  }
  readonly passkeyPaths: PasskeyPaths | null
  /** Where users add and remove passkeys. */
  readonly passkeysPage: string | null
  readonly changePasswordPage: string | null
  readonly mailer: Mailer | null
  readonly mailTokens: MailTokens | null
  /** The pages of the application for the links in mails. */
  readonly mailPages: Readonly<Record<keyof MailPages, string | null>> | null
  /** How pages of the plugin, of steps and of links look. */
  readonly layout: PageLayout | null
  /** Whether the option `pages` is given. */
  readonly hasPages: boolean
}

/** What forms ask of the feature that hashes passwords. */
export interface PasswordQueue {
  /** Refuses a request while too many passwords wait; after a pause, unless its body was read. */
  readonly refuseWhenBusy: (request: FastifyRequest, isRead?: boolean) => Promise<void>
  readonly passwordsFor: (submission: { request: FastifyRequest, reply: FastifyReply }) => Passwords
}

/** Hashes and compares passwords for the sender of a form. */
export interface Passwords {
  readonly hashPassword: (password: string, about: { email: string }) => Promise<string>
  readonly rehashPassword: (password: string) => Promise<string>
  readonly verifyPassword: (hash: string | null, password: string) => Promise<{ matches: boolean, outdated: boolean }>
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

/** Returns a part of the context, or throws `unavailable` with the option that it comes from. */
export function needed<T> (part: T | null, option: string): T {
  if (part !== null) return part
  throw new AuthError('unavailable', { cause: new Error(`this process lacks the option ${option}: set it everywhere`) })
}

/** Returns what seals a sign-in that waits; without it no sign-in can wait: `unavailable`. */
export function sealerOf ({ factors: { sealer } }: AuthContext): Sealer {
  return needed(sealer, 'dataSecret, or the setting SVC_AUTH_DATA_SECRET')
}
