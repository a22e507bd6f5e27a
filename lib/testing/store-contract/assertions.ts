import assert from 'node:assert/strict'
import type { Accounts } from '../../accounts/accounts.js'
import type { NewUser } from '../../accounts/identities.js'
import { INVALID_REQUEST } from './fixtures.js'

/** Tells whether text with a NUL character was written. If not, asserts that it was refused. */
export async function isKept (writing: Promise<unknown>): Promise<boolean> {
  const [written] = await Promise.allSettled([writing])
  if (written.status === 'rejected') assertHas(written.reason, INVALID_REQUEST)
  else assert.ok(written.value)
  return written.status === 'fulfilled'
}

/** Asserts that the store has nothing of a user. */
export async function assertGone (store: Accounts, { userId, email, link }: NewUser): Promise<void> {
  assert.equal(await store.findUser({ userId }), null)
  if (email !== null) assert.equal(await store.findUser({ email }), null)
  assert.equal(await store.findUser({ provider: link.provider, subject: link.subject }), null)
  assert.equal(await store.findCredential(link.subject), null)
  assert.deepEqual(await store.links(userId), [])
}

/** Asserts that a value has the members of another one, which may be fewer. */
export function assertHas (actual: unknown, expected: object, message?: string): void {
  assert.deepEqual(partOf(actual, expected), expected, message)
}

/** The part of a value that a shape has members for. */
function partOf (value: unknown, shape: unknown): unknown {
  if (!isObject(value) || !isObject(shape) || value instanceof Date) return value
  if (Array.isArray(value)) return value.map((member, index) => partOf(member, Reflect.get(shape, index)))
  return Object.fromEntries(
    Object.keys(shape).map(name => [name, partOf(Reflect.get(value, name), Reflect.get(shape, name))])
  )
}

function isObject (value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
