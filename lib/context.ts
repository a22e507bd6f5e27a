import type { onRequestAsyncHookHandler } from 'fastify'
import type { Accounts } from './accounts/accounts.js'
import type { AuthChannel } from './channel.js'
import { AuthError } from './errors.js'
import type { PasskeyCeremonies } from './factors/passkey-ceremonies.js'
import type { SecondFactorRules } from './factors/second-factor.js'
import type { DeleteHook, LinkHook, LinkingPolicy, SignInHook } from './hooks.js'
import type { RedirectPages } from './http/redirect-pages.js'
import type { SignedRequests } from './http/signed-requests.js'
import type { Site } from './http/site.js'
import type { AccountRoutes, LocalIdentityProvider } from './local-identity-provider.js'
import type { MailPages } from './mails/mail.js'
import type { MailTokens } from './mails/mail-tokens.js'
import type { PageLayout } from './pages/page-layout.js'
import type { PasskeyPaths } from './pages/passkey-form.js'
import type { ExternalProvider } from './providers/provider.js'
import type { Sealer } from './sealed.js'
import type { StoreCapabilities } from './store/capabilities.js'
import type { StoredSessions } from './store/sessions.js'
import type { RateLimits } from './web/limits.js'
import type { Mailer } from './web/mailer.js'

/** What acts, guards and hooks work with: made once, from the options of the plugin. */
export interface AuthContext {
  /** The accounts of the store: the only way to them. */
  readonly accounts: Accounts
  /** What the store keeps besides accounts. */
  readonly kept: StoreCapabilities
  /** The sessions beside the users; null where a session store of the application has them. */
  readonly listedSessions: StoredSessions | null

  /** The external providers, in the order of the option. */
  readonly providers: readonly ExternalProvider[]
  /** Null without the option `local`. */
  readonly local: LocalIdentityProvider | null
  /** The second factors and passkeys that this process can ask for. */
  readonly factors: FactorRules
  /** Verifies the requests that `app.auth.signInUrl` signs. */
  readonly signedRequests: SignedRequests
  /**
   * The lifetime of a session in which the user asked to be remembered, in milliseconds; null when
   * they are not asked.
   */
  readonly remember: number | null

  /** When an unknown identity is linked to the user with its e-mail. */
  readonly linking: LinkingPolicy
  /** The hooks of the application; null for none. */
  readonly onSignIn: SignInHook | null
  readonly onLink: LinkHook | null
  readonly onDelete: DeleteHook | null
  /** `app.auth.channel`. */
  readonly channel: AuthChannel

  /** The application as browsers see it. */
  readonly site: Site
  /** The path in front of all routes. */
  readonly prefix: string
  /** Redirects a navigation on another host to `baseUrl`: an `onRequest` hook of pages. */
  readonly redirectToBaseUrl: onRequestAsyncHookHandler
  /** The pages that browsers are redirected to. */
  readonly pages: RedirectPages
  /** The pages of the application for the links in mails; null without mails. */
  readonly mailPages: Readonly<Record<keyof MailPages, string | null>> | null
  /** The page for changing the password as browsers see it; null for none. */
  readonly changePasswordPage: string | null
  /**
   * How the pages of the option `pages`, of steps and of links look; null where no
   * option mounts any.
   */
  readonly layout: PageLayout | null
  /** Whether the option `pages` mounts the plugin's own pages. */
  readonly hasPages: boolean
  /** For pages with passkeys; null without passkeys. */
  readonly passkeyPaths: PasskeyPaths | null

  /** The limits of attempts. */
  readonly limits: RateLimits
  /** Sends mails; null without the option `sendMail`. */
  readonly mailer: Mailer | null
  /** Issues and verifies the tokens in the links of mails; null without mails. */
  readonly mailTokens: MailTokens | null
}

/** The options of second factors and passkeys. */
export interface FactorRules {
  /** Null without second factors. */
  readonly secondFactor: SecondFactorRules | null
  /** Null without passkeys. */
  readonly passkeys: PasskeyCeremonies | null
  /** Seals what waits for a factor; null without a data secret, which passkeys do not need. */
  readonly sealer: Sealer | null
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

/** Whether the application has passkeys. */
export function hasPasskeys ({ factors: { passkeys } }: AuthContext): boolean {
  return passkeys !== null
}

/** Whether the application has second factors or passkeys. */
export function hasFactors ({ factors: { secondFactor, passkeys } }: Pick<AuthContext, 'factors'>): boolean {
  return secondFactor !== null || passkeys !== null
}

/**
 * Whether the application has the routes that need mails.
 *
 * @param route one of those that the application may switch off
 */
export function hasMails ({ local, mailer }: AuthContext, route?: keyof AccountRoutes): boolean {
  return mailer !== null && local !== null && (route === undefined || local.accountRoutes[route])
}

/**
 * Returns a part of the context that an act needs.
 *
 * @param option the name of the option that it comes from
 * @throws AuthError `unavailable`, with the option in its cause
 */
export function needed<T> (part: T | null, option: string): T {
  if (part !== null) return part
  throw new AuthError('unavailable', { cause: new Error(`this process lacks the option ${option}: set it everywhere`) })
}
