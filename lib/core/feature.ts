import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Secrets } from '../secrets.js'
import type { Act } from './act.js'
import type { AuthContext, SignInCheck } from './context.js'
import type { MailTokens } from './mail-links.js'
import type { ApplicationPages } from './redirect-pages.js'
import type { FeatureTables } from '../session/feature-tables.js'
import type { Site } from './site.js'
import type { Section } from './pages/page.js'

/**
 * A capability of the plugin: what it adds to the lists that the kernel asks. It is loaded at each
 * start, so what only some applications need is behind functions that load it.
 */
export interface Feature {
  /** Whether the options ask for its acts and documents; default always. */
  readonly when?: (auth: AuthContext) => boolean
  /** What users do, in the order of the document. */
  readonly acts?: readonly Act[] | ((auth: AuthContext) => Promise<readonly Act[]>)
  /** Loads what the account page shows of it, whatever the other options. */
  readonly sections?: (auth: AuthContext) => Promise<readonly Section[]>
  /** Mounts what programs ask without a session, and what they look for at the root. */
  readonly mountDocuments?: (scope: FastifyInstance, auth: AuthContext) => void | Promise<void>
  /** Adds hooks to the whole application, before its routes. */
  readonly addHooks?: (app: FastifyInstance, auth: AuthContext) => void
  /** What a sign-in passes once its first factor is known. */
  readonly checkSignIn?: SignInCheck
  /** Returns whether the application requires a second factor; null for never. */
  readonly requirement?: (auth: Pick<AuthContext, 'parts'>) => AuthContext['requiresFactor']
  /** Returns whether a user may act as another one; null for never. */
  readonly actingRule?: (auth: Pick<AuthContext, 'parts'>) => AuthContext['mayAct']
  /** Returns which users must sign in by a connection; null for none. */
  readonly connectionRule?: (auth: Pick<AuthContext, 'parts'>) => AuthContext['connectionRule']
  /** Its members of `app.auth`, whose type it augments. */
  readonly api?: (auth: AuthContext, log: FastifyBaseLogger) => object
  /** Loads what its first request would wait for; called once the application is ready. */
  readonly preload?: (auth: AuthContext) => unknown
}

/** What the object of an option makes its part of the context from. */
export interface PartSetup {
  readonly site: Site
  readonly dataSecrets: Secrets | null
  /** The tables of features; undefined where the store has none. */
  readonly featureTables: FeatureTables | undefined
  /** What signs the links of mails, and whether notices are sent; null without `sendMail`. */
  readonly mails: { readonly tokens: MailTokens, readonly notices: boolean } | null
  /** The name of the cookie of the session. */
  readonly cookieName: string
  readonly hasPages: boolean
  /** As in {@link AuthContext}. */
  readonly providerLabels: Map<string, string>
  /** The application's own page of second factors. */
  readonly factorPage: string | null
  /** Returns the path of a route below the prefix, as browsers see it. */
  readonly pathOf: (route: string) => string
  /** Whether the routes are not below the prefix of another context. */
  readonly isAtRoot: boolean
  /** Refuses an option whose route must be at the root of the application. */
  readonly assertAtRoot: (option: string, route: string) => void
}

/** A part that has pages of its own, in place of those that the application lacks. */
export interface PagesOfPart {
  readonly pages: Partial<Pick<ApplicationPages, 'secondFactor' | 'step'>>
}
