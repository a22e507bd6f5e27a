import { type SQLWrapper, and, eq, exists, getTableColumns, ne, not, notExists, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { AuthError } from '../../errors.js'
import { credentials, providerLinks, users } from '../../schema/postgres.js'
import { secondsNow } from '../accounts.js'
import type { EmailProofs } from '../email-proofs.js'
import { userOf } from '../rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { unlessInUse } from './accounts.js'
import type { PostgresDatabase } from './database.js'
import { type PostgresEndings, recordedEnding } from './endings.js'
import { overtaken } from './failures.js'
import {
  AND_CONFIRMATION, CONFIRMATION, ENDED_SESSIONS, GENERATION, IS_CONFIRMED, IS_VERIFIED, UNNAMED, USER_ID,
  byCodePoints, given, isBlocked, isTrue, isUser, vouchedBy
} from './statements.js'

/** Redeems e-mailed links on Postgres, like `postgresAccounts`: each operation is one statement. */
export function postgresEmailProofs (database: PostgresDatabase, endings: PostgresEndings): EmailProofs {
  return {
    verifyEmail: verifyEmail(database),
    resetPassword: resetPassword(database, endings),
    changeEmail: changeEmail(database, endings),
    disownEmail: disownEmail(database, endings)
  }
}

const EMAIL = sql`${given('email')}::text`
const TO = sql`${given('to')}::text`

// A locked row is compared as it is after the wait: of two calls at once with one proof, the second
// sees what the first has left.
const isProven = and(isUser, eq(users.email, EMAIL), sql`${GENERATION} = ${given('generation')}::bigint`)

const isLocal = eq(providerLinks.provider, 'local')
const isLinkOfUser = eq(providerLinks.userId, USER_ID)

function verifyEmail (database: PostgresDatabase): EmailProofs['verifyEmail'] {
  const { db } = database
  const owner = db.$with('owner')
    .as(db.select({ userId: users.userId, isConfirmed: IS_CONFIRMED.as('is_confirmed') }).from(users)
      .where(isProven)
      .for('no key update'))
  const link = db.$with('link').as(db.update(providerLinks)
    .set({ claims: confirmedClaims(EMAIL) })
    .from(owner)
    .where(and(
      eq(providerLinks.userId, owner.userId), isLocal, eq(providerLinks.subject, EMAIL), sql`not ${owner.isConfirmed}`
    )))
  const confirmed = db.$with('confirmed').as(db.update(users)
    .set({ extras: vouchedBy(AND_CONFIRMATION) })
    .from(owner)
    .where(and(eq(users.userId, owner.userId), sql`not ${owner.isConfirmed}`)))
  const verify = db.with(owner, link, confirmed).select({ wasConfirmed: isTrue(owner.isConfirmed) }).from(owner)
    .prepare(UNNAMED)

  return async proof => {
    const [row] = await database.run(() => verify.execute({ ...proof }))
    if (row === undefined) return null
    return row.wasConfirmed ? 'unchanged' : 'verified'
  }
}

function resetPassword ({ db }: PostgresDatabase, endings: PostgresEndings): EmailProofs['resetPassword'] {
  const seen = seenVersion(db)
  const owner = db.$with('owner')
    .as(db.select({
      ...getTableColumns(users),
      isSeen: sql`xmin::text = (select version from ${seen})`.as('is_seen'),
      wasVerified: IS_VERIFIED.as('was_verified')
    }).from(users)
      .where(and(isProven, not(isBlocked(given('milliseconds')))))
      .for('no key update'))
  const due = db.$with('due')
    .as(db.select().from(owner).where(and(sql`${owner.isSeen}`, isFree(db, owner.userId, EMAIL))))
  const removed = db.$with('removed').as(db.delete(providerLinks)
    .where(and(isLinkOfUser, not(isLocal), exists(db.select().from(due).where(sql`not ${due.wasVerified}`))))
    .returning({ provider: providerLinks.provider }))
  const link = db.$with('link').as(db.insert(providerLinks)
    .select(db.select({
      provider: sql`'local'`.as('provider'),
      subject: due.email,
      userId: due.userId,
      // As `localClaims` returns them.
      claims: sql`jsonb_strip_nulls(jsonb_build_object(
        'sub', ${due.userId}, 'email', ${due.email}, 'email_verified', true, 'name', ${due.name}
      ))`.as('claims')
    }).from(due))
    .onConflictDoUpdate({
      target: [providerLinks.userId, providerLinks.provider],
      set: { subject: sql`excluded.subject`, claims: confirmedClaims(EMAIL) }
    }))
  const set = db.$with('set').as(db.insert(credentials)
    .select(db.select({ userId: due.userId, pwHash: sql`${given('passwordHash')}::text`.as('pw_hash') }).from(due))
    .onConflictDoUpdate({ target: credentials.userId, set: { pwHash: sql`excluded.pw_hash` } }))
  const user = db.$with('reset').as(db.update(users)
    .set({ extras: sql`${vouchedBy(AND_CONFIRMATION)} || ${ENDED_SESSIONS}` })
    .from(due)
    .where(eq(users.userId, due.userId))
    .returning(getTableColumns(users)))
  const ending = recordedEnding(db, sql`${user}`)
  const reset = db.with(seen, owner, due, removed, link, set, user, ending)
    .select({
      isSeen: isTrue(owner.isSeen),
      wasVerified: isTrue(owner.wasVerified),
      user: user._.selectedFields,
      removed: removed.provider
    })
    .from(owner)
    .leftJoin(user, sql`true`)
    .leftJoin(removed, sql`true`)
    .orderBy(byCodePoints(removed.provider))
    .prepare(UNNAMED)

  return async (proof, passwordHash) => {
    const rows = await endings.run(async ending => {
      const rows = await reset.execute({
        ...proof, passwordHash, now: secondsNow(), milliseconds: Date.now(), ...ending
      })
      if (rows[0]?.isSeen === false) throw overtaken()
      return rows
    })
    const [first] = rows
    if (!first?.user) return null
    const removed = rows.flatMap(({ removed }) => removed ?? [])
    return { user: userOf(first.user), wasVerified: first.wasVerified, removed }
  }
}

function changeEmail ({ db }: PostgresDatabase, endings: PostgresEndings): EmailProofs['changeEmail'] {
  const owner = db.$with('owner')
    .as(db.select({ userId: users.userId }).from(users).where(isProven).for('no key update'))
  const other = alias(users, 'other_user')
  const hasNoOther = notExists(db.select({ one: sql`1` }).from(other)
    .where(and(eq(other.email, TO), ne(other.userId, owner.userId))))
  const due = db.$with('due').as(db.select().from(owner).where(and(hasNoOther, isFree(db, owner.userId, TO))))
  const link = db.$with('link').as(db.update(providerLinks)
    .set({ subject: TO, claims: confirmedClaims(TO) })
    .from(due)
    .where(and(eq(providerLinks.userId, due.userId), isLocal)))
  const user = db.$with('changed').as(db.update(users)
    .set({ email: TO, extras: sql`${vouchedBy(CONFIRMATION)} || ${ENDED_SESSIONS}` })
    .from(due)
    .where(eq(users.userId, due.userId))
    .returning(getTableColumns(users)))
  const ending = recordedEnding(db, sql`${user}`)
  const change = db.with(owner, due, link, user, ending).select({ user: user._.selectedFields }).from(owner)
    .leftJoin(user, sql`true`)
    .prepare(UNNAMED)

  return async (proof, to) => {
    const [row] = await endings.run(ending => change.execute({ ...proof, to, now: secondsNow(), ...ending }))
    if (row === undefined) return null
    if (!row.user) throw new AuthError('exists')
    return userOf(row.user)
  }
}

function disownEmail ({ db }: PostgresDatabase, endings: PostgresEndings): EmailProofs['disownEmail'] {
  const seen = seenVersion(db)
  const isLinkAtAddress = and(isLocal, eq(providerLinks.subject, EMAIL))
  const others = db.select({ one: sql`1` }).from(providerLinks).where(and(isLinkOfUser, sql`not (${isLinkAtAddress})`))
  const owner = db.$with('owner')
    .as(db.select({
      userId: users.userId,
      isSeen: sql`xmin::text = (select version from ${seen})`.as('is_seen'),
      isAlone: sql`not exists ${others}`.as('is_alone')
    }).from(users)
      .where(and(isProven, not(IS_VERIFIED)))
      .for('no key update'))
  const alone = db.$with('alone').as(db.select().from(owner).where(sql`${owner.isSeen} and ${owner.isAlone}`))
  const linked = db.$with('linked').as(db.select().from(owner).where(sql`${owner.isSeen} and not ${owner.isAlone}`))
  const deleted = db.$with('deleted').as(db.delete(users).where(and(isUser, exists(db.select().from(alone)))))
  const link = db.$with('link').as(db.delete(providerLinks)
    .where(and(isLinkOfUser, isLinkAtAddress, exists(db.select().from(linked))))
    .returning({ userId: providerLinks.userId }))
  const password = db.$with('password').as(db.delete(credentials)
    .where(and(eq(credentials.userId, USER_ID), exists(db.select().from(link)))))
  const freed = db.$with('freed').as(db.update(users)
    .set({ email: null, extras: sql`${users.extras} || ${ENDED_SESSIONS}` })
    .from(linked)
    .where(eq(users.userId, linked.userId)))
  const ending = recordedEnding(db, sql`${owner} where ${owner.isSeen}`)
  const disown = db.with(seen, owner, alone, linked, deleted, link, password, freed, ending)
    .select({ isSeen: isTrue(owner.isSeen), isAlone: isTrue(owner.isAlone) })
    .from(owner)
    .prepare(UNNAMED)

  return async proof => {
    const [row] = await endings.run(async ending => {
      const rows = await unlessInUse(disown.execute({ ...proof, now: secondsNow(), ...ending }))
      if (rows[0]?.isSeen === false) throw overtaken()
      return rows
    })
    if (row === undefined) return null
    return row.isAlone ? 'deleted' : 'freed'
  }
}

/**
 * The version of the user's row when the statement began. Where the locked row is another one, the
 * user may have links that the statement does not see: every change of them writes the row.
 */
function seenVersion (db: PostgresDrizzle) {
  return db.$with('seen').as(db.select({ version: sql`xmin::text`.as('version') }).from(users).where(isUser))
}

/** Whether no other user has a link at `local` with an address. */
function isFree (db: PostgresDrizzle, userId: SQLWrapper, email: SQLWrapper) {
  const other = alias(providerLinks, 'other_link')
  return notExists(db.select({ one: sql`1` }).from(other)
    .where(and(eq(other.provider, 'local'), eq(other.subject, email), ne(other.userId, userId))))
}

function confirmedClaims (email: SQLWrapper) {
  return sql`${providerLinks.claims} || jsonb_build_object('email', ${email}, 'email_verified', true)`
}
