import type { Trial } from '../parts/measure.js'
import { type AdmittedUser, anyPerson, anyPersonWithPassword, newPerson } from '../parts/people.js'
import type { Operations } from './operations.js'

/** The store and raw statements, on the same connections to the same database. */
export interface Contest {
  users: number
  store: Operations
  raw: Operations
  remove (people: AdmittedUser[]): unknown
  close (): unknown
}

/** One operation at one size. */
export interface Pair {
  operation: string
  users: number
  store: Trial<AdmittedUser>
  raw: Trial<AdmittedUser>
}

/** An operation on each of these databases, as the store and as raw statements do it. */
export function pairs (title: string, operation: keyof Operations, contests: readonly Contest[]): Pair[] {
  return contests.map(contest => ({
    operation: title,
    users: contest.users,
    store: trial(contest, operation, contest.store),
    raw: trial(contest, operation, contest.raw)
  }))
}

function trial (contest: Contest, operation: keyof Operations, operations: Operations): Trial<AdmittedUser> {
  const call = operations[operation]
  return { choose: chooser(operation, contest.users), call, check, undo: operation === 'createUser' ? contest.remove : () => {} }
}

function chooser (operation: keyof Operations, users: number): () => AdmittedUser {
  if (operation === 'createUser') return () => newPerson(users)
  return operation === 'findCredential' ? () => anyPersonWithPassword(users) : () => anyPerson(users)
}

/** A figure is worth nothing when the work was not done. */
function check (result: unknown, { userId, name }: AdmittedUser): void {
  const text = JSON.stringify(result ?? null)
  if (!text.includes(userId) && !text.includes(name)) throw new Error(`expected the user ${userId}, got ${text}`)
}
