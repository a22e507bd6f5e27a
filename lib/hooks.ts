import { isAsyncFunction } from 'node:util/types'
import type { FastifyRequest } from 'fastify'
import type { OnCreate } from './accounts/accounts.js'
import { type AuthStore, refusalBy } from './accounts/auth-store.js'
import { mapAwaited } from './base/concurrency.js'
import type { AuthenticationMethod, Principal } from './authentication.js'
import { type AuthorizationClaims, authorizationClaims } from './claims.js'
import { OptionsError } from './errors.js'
import type { Identity, ProviderTokens } from './providers/provider.js'
import type { User } from './accounts/account.js'

/** An identity and the provider that asserts it. */
export interface ProviderIdentity extends Identity {
  /** The name of the provider; `local` or `application` for a sign-in without one. */
  provider: string
}

/**
 * Decides whether an unknown identity may be linked to the user with the same e-mail. Check
 * `identity.emailVerified` and `identity.provider`: a linked identity has full access.
 *
 * A user whose e-mail is not verified is never linked, because an attacker can register any
 * address. The rule may delete such a user to make room for the owner of the address.
 */
export type LinkingRule = (existing: User, identity: ProviderIdentity) => boolean | Promise<boolean>

/** If the e-mail is verified on both sides, never, or if a rule of the application allows it. */
export type LinkingPolicy = 'verified-email' | 'never' | LinkingRule

/** The argument of the hook `onSignIn`: a sign-in before the session is written. */
export interface SignIn {
  /** The form or the callback that completes the sign-in, or a request of the application. */
  request: FastifyRequest
  /** The user to be signed in. */
  principal: Principal
  /** According to the provider; without an external provider, as the store has it. */
  identity: ProviderIdentity
  /** Of the provider; null for a sign-in without an external provider. */
  tokens: ProviderTokens | null
  /** Whether the hook has not admitted this user yet. */
  created: boolean
}

/**
 * Called at every sign-in before the session is written, which has the claims that the hook grants.
 * `throw new SignInRefused('code')`, or any {@link AuthError}, refuses the sign-in with its code,
 * and deletes a user whom the hook has never admitted. A user created for this sign-in is deleted
 * too when the session cannot be written afterwards.
 */
export type SignInHook = (signIn: SignIn) => void | Promise<void>

/** The argument of the hook `onLink`: an identity that a signed-in user adds, or consents with. */
export interface Linking {
  /** The callback of the provider. */
  request: FastifyRequest
  /** The user who asked for the link and is signed in. */
  userId: string
  /** According to the provider. It may be linked to this user already. */
  identity: ProviderIdentity
  /** Of the provider, not stored. */
  tokens: ProviderTokens
}

/** Called at every explicit linking before the link is written; refuses as {@link SignInHook}. */
export type LinkHook = (linking: Linking) => void | Promise<void>

/** The argument of the hook `onDelete`: a user who deletes their account, or a guest of before. */
export interface Deletion {
  /** The form that asks for it; null for a guest whose session is over. */
  request: FastifyRequest | null
  /** The signed-in user, who has authenticated for it, or the guest. */
  userId: string
}

/**
 * Called before a user deletes their account, for the application's own rows; refuses as
 * {@link SignInHook}. It runs again when the user repeats a deletion that failed afterwards.
 */
export type DeleteHook = (deletion: Deletion) => void | Promise<void>

/** The argument of the hook `onGuest`: a guest who signs in as a user who exists. */
export interface GuestSignIn {
  /** The form or the callback that completes the sign-in, or a request of the application. */
  request: FastifyRequest
  /** The guest, who is deleted afterwards. */
  guest: User
  /** The user whose session it becomes. */
  user: User
}

/**
 * Called when a guest signs in as a user who exists, once all else has allowed it: moves the rows
 * of the guest to the user. What it throws refuses the sign-in, and the guest stays. It may run
 * again for the same guest.
 */
export type GuestHook = (signIn: GuestSignIn) => void | Promise<void>

/** Calls a function of the application. Errors other than an {@link AuthError} are only logged. */
export async function callHook<T> (ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw refusalBy(error)
  }
}

/** The argument of the hook `onCreateUser`: a user who is being created. */
export interface UserCreation<Tx = unknown> {
  /** The user, whose rows are written and not committed. */
  user: User
  /** How they came; `application` by `createUser` and the command line. */
  method: AuthenticationMethod
  /** According to the provider; absent for a user who came without one. */
  identity?: ProviderIdentity
  /** The form or the callback; for `createUser` the request of its last argument. */
  request?: FastifyRequest
  /** Present where a guest becomes the user: their id is that of the guest. */
  promoted?: true
  /** What the application's own statements run in: see {@link TransactionOf}. */
  tx: Tx
}

/** What the hook `onCreateUser` may return. */
export interface CreatedClaims {
  /** Authorization claims, written with the user, and part of the first session. */
  claims?: AuthorizationClaims
}

/**
 * Called for each user who is created, in the transaction that creates them: rows that it writes by
 * `tx` are committed with the user, or neither is. What it throws refuses the user. It may be
 * called again after a conflict, so it must have no other effects. With SQLite it returns no
 * promise.
 */
export type CreateUserHook<Tx = unknown> =
  (creation: UserCreation<Tx>) => CreatedClaims | void | PromiseLike<CreatedClaims | void>

/** Returns what a store asks about a user who is created; undefined without the hook. */
export function creating (
  { onCreateUser }: { readonly onCreateUser: CreateUserHook | null }, how: Omit<UserCreation, 'user' | 'tx'>
): OnCreate | undefined {
  if (onCreateUser === null) return
  return (user, tx) => mapAwaited(onCreateUser({ ...how, user, tx }), result =>
    result?.claims === undefined ? null : authorizationClaims(result.claims))
}

/** Refuses a hook that the store cannot ask: OptionsError. */
export async function assertAsksHook (store: AuthStore, onCreateUser: CreateUserHook): Promise<void> {
  const problem = store.hookProblem === undefined
    ? 'needs a store that runs it in the transaction that creates a user, and says so by hookProblem'
    : await store.hookProblem(isAsyncFunction(onCreateUser))
  if (problem !== null) throw new OptionsError(`onCreateUser ${problem}`)
}
