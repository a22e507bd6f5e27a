import type { User } from '../accounts/account.js'
import type { CanSignIn } from '../accounts/identities.js'
import { type AuthContext, hasMailSignIn, hasPasswords } from '../context.js'
import { type CurrentUser, readAccount } from './current.js'
import { factorsOf } from './factors.js'

/** How a user can reauthenticate: `password`, `mail`, kinds of factors, names of providers. */
export async function methodsOf (auth: AuthContext, userId: string): Promise<string[]> {
  const found = await readAccount(auth, userId)
  return found === null ? [] : methodsIn(auth, found)
}

export function methodsIn (auth: AuthContext, { user, links }: Pick<CurrentUser, 'user' | 'links'>): string[] {
  const proving = new Set(auth.providers.filter(provider => provider.provesAuthTime === true).map(({ name }) => name))
  const names = links.map(({ provider }) => provider)
  const kinds = factorsOf(auth, user)
  const password = hasPasswords(auth) && names.includes('local') ? ['password'] : []
  const mail = canSignInByMail(auth, user) ? ['mail'] : []
  return [...password, ...mail, ...kinds, ...names.filter(name => proving.has(name))]
}

/** Whether this process, with its options, offers a user a method to sign in. */
export function canSignIn (auth: AuthContext, ...[user, links]: Parameters<CanSignIn>): boolean {
  const isOffered = (name: string): boolean =>
    name === 'local' ? hasPasswords(auth) : auth.providers.some(provider => provider.name === name)
  return links.some(({ provider }) => isOffered(provider)) || canSignInByMail(auth, user) ||
    factorsOf(auth, user).includes('passkey')
}

export function canSignInByMail (auth: AuthContext, { email, emailDisputed }: User): boolean {
  return hasMailSignIn(auth) && email !== null && !emailDisputed
}
