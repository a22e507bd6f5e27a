/**
 * Sign-in by passkey, for the option `passkeys` of the plugin.
 *
 * @module passkeys
 */
export { Passkeys, type PasskeysOptions } from './features/passkeys/passkeys.js'
