/**
 * Tools for the tests of an application: signed-in users, an OpenID provider on this machine, a
 * mailbox, an authenticator app, and the contract of a store. Importing them with
 * `NODE_ENV=production` throws.
 *
 * @module testing
 */
import { refuseProduction } from './testing/production.js'

export { type SignedInHeaders, type SignedInUser, type TestedApp, signedIn } from './testing/signed-in.js'
export {
  type ProviderFault, type ProviderSettings, type ProviderSignIn, type ProviderSignInOptions, type ProviderUser,
  type TestProvider, type TestProviderOptions, startProvider
} from './testing/provider.js'
export { type MailOf, type Mailbox, type NextMailOptions, mailbox } from './testing/mailbox.js'
export { totp } from './testing/totp.js'
export { authStoreContract } from './testing/store-contract.js'

refuseProduction()
