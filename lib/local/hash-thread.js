// @ts-check
/** What runs in the threads of {@link hashThreads}. JavaScript, for what loads TypeScript in the main thread does not everywhere do so in others. */
import { hashSync, verifySync } from '@node-rs/argon2'

/** @param {{ password: string, cost: import('./password.js').Argon2Cost }} task */
export function hash ({ password, cost }) {
  return hashSync(password, cost)
}

/** @param {{ password: string, hash: string }} task */
export function verify ({ password, hash }) {
  return verifySync(hash, password)
}
