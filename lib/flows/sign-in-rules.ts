import type { FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import type { Identity, ProviderTokens } from '../providers/provider.js'
import type { Principal } from '../session/record.js'
import type { AuthStore, User } from '../store/store.js'

/** Who somebody is, and according to whom. */
export interface ProviderIdentity extends Identity {
  /** The name of the provider, or `local`. */
  provider: string
}

/**
 * An application's own rule: whether an unknown identity is the same person as the user who has its e-mail.
 *
 * Look at `identity.emailVerified` and at who the provider is: whoever is admitted has the account. A user whose e-mail nobody has
 * verified is never joined, whatever the rule says, for anybody can register any address; to make room for its owner the rule may
 * delete that user.
 */
export type LinkingRule = (existing: User, identity: ProviderIdentity) => boolean | Promise<boolean>

/** When an unknown identity joins the user who has its e-mail: when both sides have it verified, never, or when the application says so. */
export type LinkingPolicy = 'verified-email' | 'never' | LinkingRule

/** A sign-in that is about to happen, as the hook `onSignIn` sees it. */
export interface SignIn {
  /** The one that signs in: the form, or the callback of the provider. */
  request: FastifyRequest
  /** Who will be signed in. */
  principal: Principal
  /** What the provider says of him now; for a sign-in without an external provider, what the store has. */
  identity: ProviderIdentity
  /** What the provider issued, for this hook alone: it is stored nowhere. Null for a sign-in without an external provider. */
  tokens: ProviderTokens | null
  /** Whether the hook has not let this user in yet: at his first sign-in, and again until it has. */
  created: boolean
}

/**
 * The application's part in every sign-in, before the session is written. Claims that it grants are in the principal already.
 * `throw new SignInRefused('code')`, or any {@link AuthError}, refuses with its code; a user whom the hook has never let in is then
 * deleted again. So is a user who was made for this sign-in, when the session cannot be written afterwards.
 */
export type SignInHook = (signIn: SignIn) => void | Promise<void>

/** An identity that a signed-in user is about to add to their account, as the hook `onLink` sees it. */
export interface Linking {
  /** The callback of the provider. */
  request: FastifyRequest
  /** The user who asked for the link and is signed in. */
  userId: string
  /** The identity, according to the provider. It may be linked to this user already. */
  identity: ProviderIdentity
  /** What the provider issued, for this hook alone: it is stored nowhere. */
  tokens: ProviderTokens
}

/**
 * The application's part in every explicit linking, before the link is written. `throw new SignInRefused('code')`, or any
 * {@link AuthError}, refuses with its code.
 */
export type LinkHook = (linking: Linking) => void | Promise<void>

/** What an application has decided about sign-ins. */
export interface SignInRules {
  readonly store: AuthStore
  readonly linking: LinkingPolicy
  readonly onSignIn: SignInHook | null
  readonly onLink: LinkHook | null
}

/**
 * Asks a function of the application. An {@link AuthError} that it throws is its refusal and answers as itself; any other error is a
 * mistake, which is for the log alone.
 *
 * @throws AuthError
 */
export async function answerOfApplication<T> (ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof AuthError) throw error
    throw new AuthError('unavailable', { message: 'The sign-in could not be completed; try again later.', cause: error })
  }
}
