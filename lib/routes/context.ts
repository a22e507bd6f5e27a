import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { AuthChannel } from '../channel.js'
import type { AuthError } from '../errors.js'
import type { SignInRules } from '../flows/sign-in-rules.js'
import type { SignedRequests } from '../flows/signed-requests.js'
import type { RedirectPages } from '../http/redirect-pages.js'
import type { Site } from '../http/site.js'
import type { ResolvedOptions } from '../options.js'
import type { PageLayout } from '../pages/page-layout.js'
import type { PasskeyPaths } from '../pages/passkey-form.js'
import type { ExternalProvider } from '../providers/provider.js'
import type { RateLimits } from './limits.js'
import type { Mailer } from './mailer.js'

/** Answers a form of a page, which failed, with that page as it is with this query. */
export type FailurePage = (
  request: FastifyRequest, reply: FastifyReply, error: AuthError, query: URLSearchParams
) => Promise<FastifyReply>

/**
 * What the routes share: the scope that they are mounted in, and what their handlers need of the
 * plugin.
 */
export interface RouteContext {
  /** The encapsulated context of the routes. */
  readonly scope: FastifyInstance
  /** The application as browsers see it. */
  readonly site: Site
  /** The path in front of all routes. */
  readonly prefix: string
  /** Redirects a navigation on another host to `baseUrl`: an `onRequest` hook of pages. */
  readonly redirectToBaseUrl: onRequestAsyncHookHandler
  /** Returns the path of a route below the prefix, such as `logout`, as browsers see it. */
  readonly pathOf: (route: string) => string
  /** The application's rules for sign-ins, with the store. */
  readonly rules: SignInRules
  /** The external providers. */
  readonly providers: readonly ExternalProvider[]
  /** Verifies the requests that `app.auth.signInUrl` signed. */
  readonly signedRequests: SignedRequests
  /** The pages that browsers are redirected to. */
  readonly pages: RedirectPages
  /** The limits of attempts. */
  readonly limits: RateLimits
  /** The application's hook for deletions; null without one. */
  readonly onDelete: ResolvedOptions['onDelete']
  /** `app.auth.channel`. */
  readonly channel: AuthChannel
  /** The sessions beside the users; null where a session store of the application has them. */
  readonly listedSessions: ResolvedOptions['listedSessions']
  /** Sends mails; null without the option `sendMail`. */
  readonly mailer: Mailer | null
  /** The pages of the plugin that show the failures of their forms, by their paths. */
  readonly failurePages: Map<string, FailurePage>
}

/** What the pages share. */
export interface PagesContext extends RouteContext {
  /** How pages look. */
  readonly look: PageLayout
  /** For pages with passkeys; null without passkeys. */
  readonly passkeyPaths: PasskeyPaths | null
  /** Sentences of the plugin besides those of its codes, which pages say in their language. */
  readonly ownSentences: readonly string[]
}

/** What the routes with links in mails share besides. */
export interface MailContext extends PagesContext {
  readonly mailer: Mailer
  /** The pages of the application for the links. */
  readonly mailPages: NonNullable<ResolvedOptions['mailPages']>
}
