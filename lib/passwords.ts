/**
 * Checks for new passwords, for the option `password.check` of a `LocalIdentityProvider`.
 *
 * @module passwords
 */
export { all } from './features/password/checks.js'
export { type BreachedCheck, breached } from './features/password/checks.js'
export { common } from './features/password/rules.js'
