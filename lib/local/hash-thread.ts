/** What runs in the threads of {@link HashThreads}. */
import { hashSync, verifySync } from '@node-rs/argon2'
import type { Argon2Cost } from './password.js'

export function hash ({ password, cost }: { password: string, cost: Argon2Cost }): string {
  return hashSync(password, cost)
}

export function verify ({ password, hash }: { password: string, hash: string }): boolean {
  return verifySync(hash, password)
}
