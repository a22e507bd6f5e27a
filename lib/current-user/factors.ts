import type { FactorKind, User } from '../accounts/account.js'
import type { AuthenticationMethod, Principal } from '../authentication.js'
import type { AuthContext } from '../context.js'
import { AuthError } from '../errors.js'
import type { FirstFactor } from '../factors/second-factor.js'
import { callHook } from '../hooks.js'

/** The kinds of factors by which a user can authenticate here, as {@link assertCanAsk} refuses. */
export async function factorsOfUser (auth: AuthContext, userId: string): Promise<FactorKind[]> {
  const user = await auth.accounts.findUser({ userId })
  if (user === null) return []
  assertCanAsk(auth, user)
  return factorsOf(auth, user)
}

export function factorsOf (
  { factors: { secondFactor, passkeys } }: Pick<AuthContext, 'factors'>, { factors: kinds = [] }: User
): FactorKind[] {
  return kinds.filter(kind => (kind === 'passkey' ? passkeys : secondFactor) !== null)
}

/**
 * Refuses a user who has factors, none of which this process can ask for. Otherwise it would pass
 * over a factor that the user has, or that another process requires.
 *
 * @throws AuthError `unavailable`; its cause names the option, for the log
 */
export function assertCanAsk (auth: AuthContext, user: User): void {
  const { userId, factors: kinds = [] } = user
  if (!cannotAsk(auth, user)) return
  const option = kinds.includes('passkey') ? 'passkeys' : 'secondFactor'
  throw new AuthError('unavailable', {
    cause: new Error(`the user ${userId} has a second factor (${kinds.join(', ')}) that this process cannot ask for: ` +
      `set the option ${option} in all processes before users set up factors`)
  })
}

/**
 * Whether a second factor may be due at a sign-in of a user, or the sign-in be refused for want of
 * one: until that is known, it writes nothing.
 */
export function mayNeedFactor (auth: Pick<AuthContext, 'factors'>, user: User): boolean {
  return cannotAsk(auth, user) || user.factors?.includes('totp') === true ||
    auth.factors.secondFactor?.required != null
}

function cannotAsk (auth: Pick<AuthContext, 'factors'>, user: User): boolean {
  const { factors: kinds = [] } = user
  return kinds.length > 0 && factorsOf(auth, user).length === 0
}

/** Whether a code can be mailed to a user: to an address that they have confirmed. */
export function canMailCode ({ mailer }: AuthContext, { email, emailVerified }: User): boolean {
  return mailer !== null && email !== null && emailVerified
}

export async function isFactorRequired (
  { factors: { secondFactor } }: AuthContext, signIn: FirstFactor
): Promise<boolean> {
  const required = secondFactor?.required ?? null
  // Any truthy answer: a rule that is not typed must not fail open.
  return required !== null && Boolean(await callHook(() => required(signIn)))
}

const FIRST_FACTORS: readonly AuthenticationMethod[] = ['password', 'provider', 'mail', 'application']

/** Whether the application requires a second factor of a user, by whichever method they sign in. */
export async function isFactorRequiredOf (auth: AuthContext, principal: Principal): Promise<boolean> {
  for (const method of FIRST_FACTORS) if (await isFactorRequired(auth, { principal, method })) return true
  return false
}
