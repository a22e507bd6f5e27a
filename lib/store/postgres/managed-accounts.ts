import {
  type SQL, and, eq, exists, getTableColumns, gt, inArray, isNotNull, not, notExists, or, sql
} from 'drizzle-orm'
import { AuthError } from '../../errors.js'
import { credentials, providerLinks, users } from '../../schema/postgres.js'
import { OWN_PROVIDERS, endOfPrefix, secondsNow } from '../accounts.js'
import { notesOfChange, standingIn, userOf } from '../rows.js'
import type { ManagedAccounts } from '../store.js'
import type { PostgresDatabase } from './database.js'
import { type PostgresEndings, recordedEnding } from './endings.js'
import { ENDED_SESSIONS, IS_CONFIRMED, UNNAMED, given, isBlocked, isUser, json } from './statements.js'

/** Manages accounts on Postgres, like `postgresAccounts`: each operation is one statement. */
export function postgresManagedAccounts (database: PostgresDatabase, endings: PostgresEndings): ManagedAccounts {
  return {
    standing: standing(database),
    changeUser: changeUser(database, endings),
    setPassword: setPassword(database, endings),
    users: listUsers(database)
  }
}

function standing (database: PostgresDatabase): ManagedAccounts['standing'] {
  const ofUser = database.reads.select({ extras: users.extras }).from(users).where(isUser).prepare(UNNAMED)

  return async userId => {
    const [user] = await database.run(() => ofUser.execute({ userId }))
    return user === undefined ? null : standingIn(user.extras)
  }
}

function changeUser (database: PostgresDatabase, endings: PostgresEndings): ManagedAccounts['changeUser'] {
  const { db } = database
  const isNamed = sql`${given('isNamed')}::boolean`
  const name = sql`${given('name')}::text`
  const owner = db.$with('owner').as(db.select({ userId: users.userId }).from(users).where(isUser).for('no key update'))
  const ownLinks = db.$with('own_links').as(db.update(providerLinks)
    .set({ claims: sql`${providerLinks.claims} - 'name' || jsonb_strip_nulls(jsonb_build_object('name', ${name}))` })
    .from(owner)
    .where(and(
      eq(providerLinks.userId, owner.userId), inArray(providerLinks.provider, [...OWN_PROVIDERS]), isNamed
    )))
  const extras = sql`${users.extras} || ${json('notes')}`
  const changed = (extras: SQL) => db.$with('changed').as(db.update(users)
    .set({
      name: sql`case when ${isNamed} then ${name} else ${users.name} end`,
      extras: sql`jsonb_strip_nulls(${extras})`
    })
    .from(owner)
    .where(eq(users.userId, owner.userId))
    .returning(getTableColumns(users)))
  const user = changed(extras)
  const change = db.with(owner, ownLinks, user).select().from(user).prepare(UNNAMED)
  const signedOut = changed(sql`${extras} || ${ENDED_SESSIONS}`)
  const ending = recordedEnding(db, sql`${signedOut}`)
  const end = db.with(owner, ownLinks, signedOut, ending).select().from(signedOut).prepare(UNNAMED)

  return async (userId, changes) => {
    const { name = null } = changes
    const values = { userId, isNamed: changes.name !== undefined, name, notes: notesOfChange(changes) }
    const [row] = changes.endSessions
      ? await endings.run(ending => end.execute({ ...values, now: secondsNow(), ...ending }))
      : await database.run(() => change.execute(values))
    if (row === undefined) throw new AuthError('unknown_user')
    return userOf(row)
  }
}

function setPassword (database: PostgresDatabase, endings: PostgresEndings): ManagedAccounts['setPassword'] {
  const { db } = database
  const current = sql`${given('current')}::text`
  const owner = db.$with('owner')
    .as(db.select({ ...getTableColumns(users), isConfirmed: IS_CONFIRMED.as('is_confirmed') }).from(users)
      .where(and(isUser, isNotNull(users.email)))
      .for('no key update'))
  // Locked rows are read as they are after the wait.
  const held = db.$with('held').as(db.select({ userId: providerLinks.userId }).from(providerLinks)
    .innerJoin(owner, eq(owner.userId, providerLinks.userId))
    .where(eq(providerLinks.provider, 'local'))
    .for('update', { of: providerLinks }))
  const before = db.$with('before').as(db.select({ pwHash: credentials.pwHash }).from(credentials)
    .innerJoin(owner, eq(owner.userId, credentials.userId))
    .for('update', { of: credentials }))
  const isAny = sql`${given('isAny')}::boolean`
  const isCurrent = sql`(${isAny} or ${current} is not distinct from (select pw_hash from ${before}))`
  const made = db.$with('made').as(db.insert(providerLinks)
    .select(db.select({
      provider: sql`'local'`.as('provider'),
      subject: owner.email,
      userId: owner.userId,
      // As `localClaims` returns them.
      claims: sql`jsonb_strip_nulls(jsonb_build_object(
        'sub', ${owner.userId}, 'email', ${owner.email}, 'name', ${owner.name},
        'email_verified', case when ${owner.isConfirmed} then true end
      ))`.as('claims')
    }).from(owner).where(and(isCurrent, notExists(db.select().from(held)))))
    // Of two first passwords at once, the second finds the link of the first.
    .onConflictDoUpdate({
      target: [providerLinks.provider, providerLinks.subject],
      set: { userId: sql`excluded.user_id` },
      setWhere: sql`${providerLinks.userId} = excluded.user_id`
    })
    .returning({ userId: providerLinks.userId }))
  const set = db.$with('set').as(db.insert(credentials)
    .select(db.select({ userId: owner.userId, pwHash: sql`${given('passwordHash')}::text`.as('pw_hash') }).from(owner)
      .where(and(isCurrent, or(exists(db.select().from(held)), exists(db.select().from(made))))))
    // Of two first passwords at once, the second finds the hash of the first only here.
    .onConflictDoUpdate({
      target: credentials.userId,
      set: { pwHash: sql`excluded.pw_hash` },
      setWhere: sql`${isAny} or ${credentials.pwHash} = ${current}`
    })
    .returning({ userId: credentials.userId }))
  const user = db.$with('changed').as(db.update(users)
    .set({ extras: sql`${users.extras} || ${ENDED_SESSIONS}` })
    .from(set)
    .where(eq(users.userId, set.userId))
    .returning(getTableColumns(users)))
  const ending = recordedEnding(db, sql`${user}`)
  const replace = db.with(owner, held, before, made, set, user, ending).select().from(user).prepare(UNNAMED)
  const known = db.select({ userId: users.userId }).from(users).where(isUser).prepare(UNNAMED)

  return async (userId, { passwordHash, current }) => {
    const [row] = await endings.run(ending => replace.execute({
      userId, passwordHash, isAny: current === undefined, current: current ?? null, now: secondsNow(), ...ending
    }))
    if (row !== undefined) return userOf(row)
    const users = await database.run(() => known.execute({ userId }))
    if (users.length === 0) throw new AuthError('unknown_user')
    return null
  }
}

function listUsers (database: PostgresDatabase): ManagedAccounts['users'] {
  return async ({ after, limit, email, blocked }) => {
    const rows = await database.run(() => database.db.select().from(users)
      .where(and(
        after === null ? undefined : gt(users.userId, after),
        email === null ? undefined : sql`${users.email} ~>=~ ${email} and ${users.email} ~<~ ${endOfPrefix(email)}`,
        blocked === null ? undefined : blocked ? isBlocked(Date.now()) : not(isBlocked(Date.now()))
      ))
      .orderBy(users.userId)
      .limit(limit))
    return rows.map(row => userOf(row))
  }
}
