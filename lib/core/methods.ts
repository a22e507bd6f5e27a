import type { FactorKind, User } from '../accounts/account.js'
import type { AuthenticationMethod, Principal } from '../authentication.js'
import { AuthError } from '../errors.js'
import { callHook } from '../hooks.js'
import type { Asked, Asking, AuthContext, FactorTraits, FirstFactor, Method, UserWithLinks } from './context.js'
import type { Content } from './pages/elements.js'
import type { View } from './pages/layout.js'

/** What says which methods a user needs. */
export type MethodRules = Pick<AuthContext, 'methods' | 'offered' | 'requiresFactor'>

/** Whether this process offers second factors or passkeys. */
export function hasFactors (auth: Pick<AuthContext, 'offered'>): boolean {
  return auth.offered.some(({ factor }) => factor !== undefined)
}

/** How a user can reauthenticate here: names of methods, and of providers. */
export function namesOfMethods (
  auth: Pick<AuthContext, 'offered' | 'parts' | 'providers'>, known: UserWithLinks
): string[] {
  return methodsOf(auth, known).flatMap(({ name, namesFor }) => namesFor?.(auth, known) ?? [name])
}

/** The methods that this process offers and a user has. */
export function methodsOf (auth: Pick<AuthContext, 'offered' | 'parts' | 'providers'>, known: UserWithLinks): Method[] {
  return auth.offered.filter(({ name, isOf }) =>
    isOf?.(auth, known) ?? known.user.factors?.some(kind => kind === name) === true)
}

/** Whether this process, with its options, offers a user a method to sign in. */
export function canSignIn (
  auth: Pick<AuthContext, 'offered' | 'parts' | 'providers'>, user: UserWithLinks['user'], links: UserWithLinks['links']
): boolean {
  return methodsOf(auth, { user, links }).some(({ factor }) => factor?.signsIn ?? factor === undefined)
}

/** The kinds of factors by which a user can authenticate here. */
export function factorsOf (
  auth: Pick<AuthContext, 'offered'>, { factors: kinds = [] }: Pick<User, 'factors'>
): FactorKind[] {
  return kinds.filter(kind => auth.offered.some(({ name }) => name === kind))
}

/** The kinds of factors by which a user can authenticate here, as {@link assertCanAsk} refuses. */
export async function factorsOfUser (
  auth: Pick<AuthContext, 'accounts' | 'methods' | 'offered'>, userId: string
): Promise<FactorKind[]> {
  const user = await auth.accounts.findUser({ userId })
  if (user === null) return []
  assertCanAsk(auth, user)
  return factorsOf(auth, user)
}

/** Whether a user has a factor with this trait, whether or not this process offers it. */
export function hasFactorThat (
  { methods }: Pick<AuthContext, 'methods'>, { factors: kinds = [] }: Pick<User, 'factors'>, trait: keyof FactorTraits
): boolean {
  return methods.some(({ name, factor }) => factor?.[trait] === true && kinds.some(kind => kind === name))
}

/**
 * Refuses a user who has factors, none of which this process can ask for. Otherwise it would pass
 * over a factor that the user has, or that another process requires.
 *
 * @throws AuthError `unavailable`; its cause names the option, for the log
 */
export function assertCanAsk (auth: Pick<AuthContext, 'methods' | 'offered'>, user: User): void {
  const { userId, factors: kinds = [] } = user
  if (!cannotAsk(auth, user)) return
  const { option = 'that offers it' } = auth.methods.find(({ name }) => kinds.some(kind => kind === name)) ?? {}
  throw new AuthError('unavailable', {
    cause: new Error(`the user ${userId} has a second factor (${kinds.join(', ')}) that this process cannot ask for: ` +
      `set the option ${option} in all processes before users set up factors`)
  })
}

function cannotAsk (auth: Pick<AuthContext, 'offered'>, user: User): boolean {
  return user.factors !== undefined && factorsOf(auth, user).length === 0
}

/**
 * Whether a second factor may be due at a sign-in of a user, or the sign-in be refused for want of
 * one: until that is known, it writes nothing.
 */
export function mayNeedFactor (auth: MethodRules, user: User): boolean {
  return cannotAsk(auth, user) || hasFactorThat(auth, user, 'isAlwaysDue') || auth.requiresFactor !== null
}

/** Whether a second factor is due at a sign-in of a user. */
export async function isFactorDue (auth: MethodRules, user: User, signIn: FirstFactor): Promise<boolean> {
  return hasFactorThat(auth, user, 'isAlwaysDue') || await isFactorRequired(auth, signIn)
}

async function isFactorRequired ({ requiresFactor }: MethodRules, signIn: FirstFactor): Promise<boolean> {
  // Any truthy answer: a rule that is not typed must not fail open.
  return requiresFactor !== null && Boolean(await callHook(() => requiresFactor(signIn)))
}

/** The methods that are a first factor alone. */
const FIRST_FACTORS: readonly AuthenticationMethod[] = ['password', 'provider', 'mail', 'application']

/** Whether the application requires a second factor of a user, by whichever method they sign in. */
export async function isFactorRequiredOf (auth: MethodRules, principal: Principal): Promise<boolean> {
  for (const method of FIRST_FACTORS) if (await isFactorRequired(auth, { principal, method })) return true
  return false
}

/** Asks a user to authenticate by one of several methods: forms first, then the buttons. */
export async function askBy (
  auth: AuthContext, methods: readonly Method[], view: View, { field, ...asked }: Asked
): Promise<{ forms: Content[], buttons: Content[], script: string | null }> {
  const shown: Asking[] = []
  // Methods of one form have one function.
  const asks = new Set(methods.flatMap(({ ask }) => ask ?? []))
  for (const ask of asks) {
    const look = shown.every(({ isButton }) => isButton) ? 'primary' : 'plain'
    const own = { ...asked, look, isAlone: asks.size === 1 } as const
    shown.push(await ask(auth, view, shown.length === 0 ? { ...own, field } : own))
  }
  const those = (isButton: boolean): Content[] =>
    shown.filter(asking => (asking.isButton ?? false) === isButton).map(({ content }) => content)
  return { forms: those(false), buttons: those(true), script: scriptOf(shown) }
}

/** Returns the script of a page with these parts; there is one at most. */
export function scriptOf (parts: ReadonlyArray<Pick<Asking, 'script'>>): string | null {
  return parts.flatMap(({ script }) => script ?? [])[0] ?? null
}
