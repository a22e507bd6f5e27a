/**
 * The part that only applications with `sendMail` need. It is loaded when they start, to keep the
 * start of the others fast.
 */
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import type { MailContext } from './context.js'
import { mountCredentialRoutes } from './credentials.js'
import { mountRecoveryRoutes } from './recovery.js'
import { mountConfirmedRegistration } from './registration.js'

/** Mounts the routes that send mails, and those that the links in mails lead to. */
export function mountMailRoutes (context: MailContext, local: LocalIdentityProvider): void {
  mountRecoveryRoutes(context, local)
  mountCredentialRoutes(context, local)
  mountConfirmedRegistration(context, local)
}
