import { randomUUID } from 'node:crypto'
import type { User } from '../accounts/account.js'
import { digestOf } from '../base/digest.js'
import { OPERATOR_LINK, type OneTimeEntries } from '../store/one-time-entries.js'
import type { MailLink } from './mail-tokens.js'

/** A sign-in that waits for the link of an operator. */
export interface OperatorSignIn extends Pick<User, 'userId' | 'generation'> {
  /** What the token in the link names. */
  readonly id: string
  readonly email: string
}

/**
 * Writes the sign-in of a user that a link of kind `sign-in` finishes once, in any browser, until
 * all their sessions end. It replaces the last one. Unlike a mailed link it proves no address.
 */
export async function putOperatorSignIn (
  entries: OneTimeEntries, { userId, generation, email }: Pick<User, 'userId' | 'generation'> & { email: string }
): Promise<MailLink> {
  const [id, startedAt] = [randomUUID(), Date.now()]
  const content: OperatorSignIn = { id, userId, generation, email }
  const key = { hash: digestOf(id), owner: digestOf(userId) }
  await entries.put({ ...key, kind: OPERATOR_LINK, content: { content, startedAt }, startedAt }, 1)
  return { userId: id, generation: 0, email, to: email, entry: key }
}
