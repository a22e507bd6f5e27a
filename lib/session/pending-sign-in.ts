import type { SignInParameters } from '../providers/provider.js'

/** A sign-in that was started at a provider and is not finished. */
export interface PendingSignIn {
  /** The name of the provider. */
  provider: string
  state: string
  nonce: string
  codeVerifier: string
  /** The page after the sign-in: a path of this origin. */
  next: string
  /**
   * The page for errors: the one that `error_next` names, or the one on which the sign-in was
   * started. A path of this origin.
   */
  startedOn: string | null
  /**
   * The id of the user who was signed in at the start; null without one, and for a linking or a
   * reauthentication once another session has replaced theirs.
   */
  startedBy: string | null
  /**
   * `link`: the user who started it links the identity to their account; `reauthentication`: they
   * reauthenticate.
   */
  purpose: 'sign-in' | 'link' | 'reauthentication'
  /** Whether the user asked to be remembered. */
  remember: boolean
  /** The parameters of this authorization request. */
  asked: SignInParameters
  /** Milliseconds since the epoch. */
  startedAt: number
}
