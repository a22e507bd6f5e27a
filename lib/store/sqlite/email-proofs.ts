import { AuthError } from '../../errors.js'
import {
  CONFIRMATION, confirmedClaims, endedSessions, holds, isConfirmed, localClaims, vouchedBy
} from '../accounts.js'
import type { EmailProof, EmailProofs } from '../email-proofs.js'
import { type UserRow, userOf } from '../rows.js'
import { isBlocked } from '../store.js'
import { removalFailure, userRemoval } from './accounts.js'
import type { SqliteDatabase } from './database.js'
import {
  deleteCredential, deleteLink, linkBySubject, linksOfUser, putCredential, putLink, setUser, userByEmail, userById
} from './statements.js'

/** Redeems e-mailed links on SQLite. */
export function sqliteEmailProofs (database: SqliteDatabase): EmailProofs {
  return {
    verifyEmail: verifyEmail(database),
    resetPassword: resetPassword(database),
    changeEmail: changeEmail(database),
    disownEmail: disownEmail(database)
  }
}

function verifyEmail (database: SqliteDatabase): EmailProofs['verifyEmail'] {
  const find = provenUser(database)
  const links = database.prepared(linksOfUser)
  const put = database.prepared(putLink)
  const set = database.prepared(setUser)

  return proof => database.transaction(() => {
    const user = find(proof)
    if (user === null) return null
    const { userId, email } = proof
    if (isConfirmed(user.extras.email_verified_by)) return 'unchanged'
    for (const link of links().all({ userId }).filter(isLocalAt(email))) {
      put().run({ ...link, claims: confirmedClaims(link.claims, email) })
    }
    const extras = vouchedBy(user.extras, CONFIRMATION)
    set().get({ ...user, extras })
    return 'verified'
  })
}

function resetPassword (database: SqliteDatabase): EmailProofs['resetPassword'] {
  const find = provenUser(database)
  const links = database.prepared(linksOfUser)
  const remove = database.prepared(deleteLink)
  const moveLocalLink = localLinkMove(database)
  const setHash = database.prepared(putCredential)
  const set = database.prepared(setUser)

  return (proof, passwordHash) => database.transaction(() => {
    const row = find(proof)
    if (row === null || isBlocked(userOf(row)) || !moveLocalLink(row, proof.email, { orMake: true })) return null
    const { userId } = proof
    const wasVerified = row.extras.email_verified === true
    const others = links().all({ userId }).map(({ provider }) => provider).filter(provider => provider !== 'local')
    const removed = wasVerified ? [] : others
    for (const provider of removed) remove().run({ userId, provider })
    setHash().run({ userId, passwordHash })
    const extras = vouchedBy(row.extras, CONFIRMATION)
    const user = userOf(set().get({ ...row, extras: endedSessions(extras) }))
    return user && { user, wasVerified, removed }
  })
}

function changeEmail (database: SqliteDatabase): EmailProofs['changeEmail'] {
  const find = provenUser(database)
  const byEmail = database.prepared(userByEmail)
  const moveLocalLink = localLinkMove(database)
  const set = database.prepared(setUser)

  return (proof, to) => database.transaction(() => {
    const user = find(proof)
    if (user === null) return null
    const { userId: owner = proof.userId } = byEmail().get({ email: to }) ?? {}
    if (owner !== proof.userId || !moveLocalLink(user, to)) throw new AuthError('exists')
    const extras = vouchedBy(user.extras, { ...CONFIRMATION, isNewEmail: true })
    return userOf(set().get({ ...user, email: to, extras: endedSessions(extras) }))
  })
}

function disownEmail (database: SqliteDatabase): EmailProofs['disownEmail'] {
  const find = provenUser(database)
  const links = database.prepared(linksOfUser)
  const remove = database.prepared(deleteLink)
  const removeCredential = database.prepared(deleteCredential)
  const removeUser = userRemoval(database)
  const set = database.prepared(setUser)

  return proof => database.transaction(() => {
    const user = find(proof)
    if (user === null || user.extras.email_verified === true) return null
    const { userId, email } = proof
    const present = links().all({ userId })
    if (present.every(isLocalAt(email))) {
      removeUser(userId)
      return 'deleted'
    }
    if (present.some(isLocalAt(email))) {
      remove().run({ userId, provider: 'local' })
      removeCredential().run({ userId })
    }
    set().get({ ...user, email: null, extras: endedSessions(user.extras) })
    return 'freed'
  }, removalFailure)
}

/** Finds the user of a proof that holds. */
function provenUser (database: SqliteDatabase): (proof: EmailProof) => UserRow | null {
  const byId = database.prepared(userById)

  return proof => {
    const row = byId().get({ userId: proof.userId })
    return row !== undefined && holds(proof, userOf(row)) ? row : null
  }
}

/**
 * Moves the link at `local` of a user to an address that they have confirmed.
 *
 * @returns a function that returns whether no other user has such a link
 */
function localLinkMove (database: SqliteDatabase) {
  const bySubject = database.prepared(linkBySubject)
  const links = database.prepared(linksOfUser)
  const put = database.prepared(putLink)

  return ({ userId, name }: UserRow, email: string, { orMake = false } = {}): boolean => {
    const holder = bySubject().get({ provider: 'local', subject: email })?.userId ?? userId
    if (holder !== userId) return false
    const made = orMake ? localClaims({ userId, email, name, isConfirmed: true }) : undefined
    const claims = links().all({ userId }).find(({ provider }) => provider === 'local')?.claims ?? made
    if (claims) put().run({ provider: 'local', subject: email, userId, claims: confirmedClaims(claims, email) })
    return true
  }
}

function isLocalAt (email: string) {
  return ({ provider, subject }: { provider: string, subject: string }) => provider === 'local' && subject === email
}
