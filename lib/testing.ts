/**
 * Tools for the tests of an application: signed-in users, an OpenID provider on this machine, a
 * mailbox, an authenticator app, and the contract of a store. Importing them with
 * `NODE_ENV=production` throws.
 *
 * @module testing
 */
import { refuseProduction } from './testing/production.js'

export { type SignedInUser, type SignedInHeaders, type TestedApp, signedIn } from './testing/signed-in.js'
export {
  type ProviderFault, type ProviderSignIn, type ProviderSignInOptions, type ProviderUser, type TestProvider,
  type TestProviderOptions, startProvider
} from './testing/provider.js'
export { type MailOf, type OfKind, type Mailbox, type NextMailOptions, mailbox } from './testing/mailbox.js'
export { type TotpOptions, totp } from './testing/totp.js'
export { type MakeStore, type TestFunction, authStoreContract } from './testing/store-contract.js'
export type { Stores } from './testing/store-contract/rule.js'

refuseProduction()
