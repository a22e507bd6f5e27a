import { AuthError, type AuthErrorCode } from '../errors.js'
import { factorExists } from './apply-rule.js'

/** What the errors of an engine mean, and what the caller of the store gets for them. */
export abstract class EngineFailures {
  abstract readonly isUniqueViolation: (error: unknown) => boolean
  /** Whether another user has the factor that was to be written. */
  abstract readonly isFactorTaken: (error: unknown) => boolean
  abstract readonly isForeignKeyViolation: (error: unknown) => boolean

  /** The error for the caller of the store; its cause says what to do, for the log. */
  abstract readonly toAuthError: (error: unknown) => AuthError

  /** An error as the log may have it. */
  causeOf (error: unknown): unknown {
    return error
  }

  readonly ofChange = (error: unknown): AuthError =>
    this.isFactorTaken(error) ? factorExists() : this.toAuthError(error)

  readonly ofDeletion = (error: unknown): AuthError => this.#ofUser(error, 'user_in_use')

  /** Of a new session, whose user may have been deleted meanwhile. */
  readonly ofSession = (error: unknown): AuthError => this.#ofUser(error, 'unauthenticated')

  #ofUser (error: unknown, code: AuthErrorCode): AuthError {
    if (!this.isForeignKeyViolation(error)) return this.toAuthError(error)
    return new AuthError(code, { cause: this.causeOf(error) })
  }
}
