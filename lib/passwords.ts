/**
 * Checks for new passwords, for the option `password.check` of a `LocalIdentityProvider`.
 *
 * @module passwords
 */
export { all } from './passwords/all.js'
export { type BreachedCheck, type BreachedOptions, type WarningLog, breached } from './passwords/breached.js'
export { type CommonOptions, common } from './passwords/common.js'
