/**
 * Checks for new passwords, for the option `password.check` of a `LocalIdentityProvider`.
 *
 * @module passwords
 */
export { all } from './passwords/all.js'
export { type BreachedCheck, breached } from './passwords/breached.js'
export { common } from './passwords/common.js'
