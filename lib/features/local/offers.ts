/** What the option `local` offers users. */
import type { AuthContext } from '../../core/context.js'
import type { AccountRoutes, LocalIdentityProvider } from './local-identity-provider.js'

declare module '../../core/context.js' {
  interface AuthContext {
    readonly local: LocalIdentityProvider | null
  }
}

/** Whether users sign in by a password. */
export function hasPasswords ({ local }: Pick<AuthContext, 'local'>): boolean {
  return local?.hasPasswords === true
}

/** Whether users register by a password or a passkey. */
export function canRegister (auth: Pick<AuthContext, 'local'>): boolean {
  return auth.local?.registration != null && (hasPasswords(auth) || canRegisterByPasskey(auth))
}

/** Whether users register by a passkey. */
export function canRegisterByPasskey ({ local }: Pick<AuthContext, 'local'>): boolean {
  return local?.registration?.passkey === true
}

/** Whether users sign in by mail. */
export function hasMailSignIn ({ local, mailer }: Pick<AuthContext, 'local' | 'mailer'>): boolean {
  return mailer !== null && local?.signInByMail != null
}

/** Whether the application has the routes that need mails, and this one of them. */
export function hasMails ({ local, mailer }: AuthContext, route?: keyof AccountRoutes): boolean {
  return mailer !== null && local !== null && (route === undefined || local.accountRoutes[route])
}
