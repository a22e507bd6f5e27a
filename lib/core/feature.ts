import type { FastifyInstance } from 'fastify'
import type { Act } from './act.js'
import type { AuthContext } from './context.js'
import type { Section } from './pages/page.js'

/**
 * A capability of the plugin: what it adds to the lists that the kernel asks. It is loaded at each
 * start, so what only some applications need is behind functions that load it.
 */
export interface Feature {
  /** Whether the options ask for its acts and documents; default always. */
  readonly when?: (auth: AuthContext) => boolean
  /** What users do, in the order of the document. */
  readonly acts?: readonly Act[] | (() => Promise<readonly Act[]>)
  /** Loads what the account page shows of it, whatever the other options. */
  readonly sections?: () => Promise<readonly Section[]>
  /** Mounts what clients look for at the root of the application, whatever the prefix. */
  readonly mountDocuments?: (scope: FastifyInstance, auth: AuthContext) => void
  /** Its members of `app.auth`, whose type it augments. */
  readonly api?: (auth: AuthContext) => object
  /** Loads what its first request would wait for; called once the application is ready. */
  readonly preload?: (auth: AuthContext) => unknown
}
