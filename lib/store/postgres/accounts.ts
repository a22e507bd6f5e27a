import { type SQL, type SQLWrapper, and, count, eq, getTableColumns, isNull, ne, notExists, or, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { AuthError } from '../../errors.js'
import { credentials, providerLinks, users } from '../../schema/postgres.js'
import { linksWithout, secondsNow } from '../accounts.js'
import { credentialOf, extrasOf, userOf } from '../rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import type { Accounts, LinkedIdentity } from '../store.js'
import type { PostgresDatabase } from './database.js'
import { type PostgresEndings, recordedEnding } from './endings.js'
import { causeOf, isForeignKeyViolation, isUniqueViolation } from './failures.js'
import {
  ENDED_SESSIONS, GENERATION, IS_CONFIRMED, UNNAMED, USER_ID, VOUCHERS, byCodePoints, given, isLink, isNewUser, isUser,
  json, vouchedBy
} from './statements.js'

/**
 * Keeps accounts on Postgres. Each operation is one statement, so that it is atomic on every driver
 * and takes one round trip. The statements are built once: Drizzle takes longer to build one than
 * the server to run it.
 *
 * An operation that changes a user or their links locks the user's row first: concurrent operations
 * then wait for each other instead of deadlocking.
 */
export function postgresAccounts (database: PostgresDatabase, endings: PostgresEndings): Accounts {
  return {
    findUser: findUser(database),
    links: links(database),
    findCredential: findCredential(database),
    refreshIdentity: refreshIdentity(database),
    createUser: createUser(database),
    addLink: addLink(database),
    removeLink: removeLink(database, endings),
    deleteUser: deleteUser(database),
    admitUser: admitUser(database),
    deleteNewUser: deleteNewUser(database),
    replacePasswordHash: replacePasswordHash(database),
    grant: grant(database),
    withdraw: withdraw(database)
  }
}

function findUser (database: PostgresDatabase): Accounts['findUser'] {
  const { db } = database
  const byId = db.select().from(users).where(isUser).prepare(UNNAMED)
  const byEmail = db.select().from(users).where(eq(users.email, given('email'))).prepare(UNNAMED)
  const byLink = db.select(getTableColumns(users)).from(providerLinks)
    .innerJoin(users, eq(users.userId, providerLinks.userId))
    .where(isLink)
    .prepare(UNNAMED)

  return async query => {
    const [row] = await database.run(() => {
      if ('userId' in query) return byId.execute(query)
      return 'email' in query ? byEmail.execute(query) : byLink.execute(query)
    })
    return userOf(row)
  }
}

function links (database: PostgresDatabase): Accounts['links'] {
  const linksOfUser = database.db.select().from(providerLinks)
    .where(eq(providerLinks.userId, USER_ID))
    .orderBy(byCodePoints(providerLinks.provider))
    .prepare(UNNAMED)

  return userId => database.run(() => linksOfUser.execute({ userId }))
}

function findCredential (database: PostgresDatabase): Accounts['findCredential'] {
  const credential = database.db
    .select({ user: users, link: providerLinks, passwordHash: credentials.pwHash })
    .from(providerLinks)
    .innerJoin(users, eq(users.userId, providerLinks.userId))
    .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
    .where(isLink)
    .prepare(UNNAMED)

  return async email => {
    const [row] = await database.run(() => credential.execute({ provider: 'local', subject: email }))
    return credentialOf(row)
  }
}

function refreshIdentity (database: PostgresDatabase): Accounts['refreshIdentity'] {
  const { db } = database
  // A locked link is read as it is after the wait: of two sign-ins at once, the second sees the
  // claims of the first.
  const hasChanged = sql`${providerLinks.claims} ->> 'email' is distinct from ${given('email')} and not ${IS_CONFIRMED}`
  const changes = noted(newEmail(db, hasChanged))
  // Most sign-ins report what the store has: these lock nothing and write nothing.
  const seen = db.$with('seen').as(db.select({
    ...getTableColumns(users),
    isChanged: sql`(${providerLinks.claims}, ${users.name}, ${users.email}, ${users.extras}) is distinct from
      (${json('claims')}, ${changes.name}, ${changes.email}, ${changes.extras})`.as('is_changed')
  }).from(users)
    .innerJoin(providerLinks, eq(providerLinks.userId, users.userId))
    .where(isLink))
  const owner = db.$with('owner')
    .as(db.select({ userId: users.userId, newEmail: newEmail(db, hasChanged).as('new_email') }).from(users)
      .innerJoin(providerLinks, eq(providerLinks.userId, users.userId))
      .innerJoin(seen, and(eq(seen.userId, users.userId), seen.isChanged))
      .where(isLink)
      .for('no key update', { of: [users, providerLinks] }))
  const link = db.$with('link').as(db.update(providerLinks).set({ claims: json('claims') }).from(owner)
    .where(and(isLink, eq(providerLinks.userId, owner.userId))))
  const refreshed = db.$with('refreshed').as(db.update(users).set(noted(owner.newEmail)).from(owner)
    .where(eq(users.userId, owner.userId))
    .returning(getTableColumns(users)))
  const columns = sql`user_id, email, name, claims, extras`
  const user = db.$with('refreshed_or_seen', getTableColumns(users)).as(
    sql`select ${columns} from ${refreshed} union all select ${columns} from ${seen} where not is_changed`
  )
  const refresh = db.with(seen, owner, link, refreshed, user).select().from(user).prepare(UNNAMED)

  return async identity => {
    const [row] = await database.run(() => refresh.execute(notesOf(identity)))
    return userOf(row)
  }
}

function createUser (database: PostgresDatabase): Accounts['createUser'] {
  const { db } = database
  const user = db.$with('new_user').as(db.insert(users)
    .values({
      userId: given('userId'),
      email: given('email'),
      name: given('name'),
      claims: json('claims'),
      extras: json('extras')
    })
    .returning())
  const link = db.$with('new_link').as(db.insert(providerLinks).values({
    provider: given('provider'),
    subject: given('subject'),
    userId: given('userId'),
    claims: json('linkClaims')
  }))
  const passwordHash = sql<string>`${given('passwordHash')}::text`
  const credential = db.$with('new_credential').as(db.insert(credentials)
    .select(db.select({ userId: user.userId, pwHash: passwordHash.as('pw_hash') }).from(user)
      .where(sql`${passwordHash} is not null`)))
  const create = db.with(user, link, credential).select().from(user).prepare(UNNAMED)

  return newUser => database.run(async () => {
    const { userId, email, name, claims, link: { provider, subject, claims: linkClaims } } = newUser
    const passwordHash = newUser.passwordHash ?? null
    const extras = extrasOf(newUser)
    try {
      const [row] = await create.execute({
        userId, email, name, claims, extras, provider, subject, linkClaims, passwordHash
      })
      return userOf(row)
    } catch (error) {
      if (isUniqueViolation(error)) return null
      throw error
    }
  })
}

function addLink (database: PostgresDatabase): Accounts['addLink'] {
  const { db } = database
  const owner = db.$with('owner')
    .as(db.select({ userId: users.userId, newEmail: newEmail(db).as('new_email') }).from(users)
      .where(and(isUser, sql`${GENERATION} = coalesce(${given('generation')}::bigint, ${GENERATION})`))
      .for('no key update'))
  const link = db.$with('link').as(db.insert(providerLinks)
    .select(db.select({
      provider: sql`${given('provider')}`.as('provider'),
      subject: sql`${given('subject')}`.as('subject'),
      userId: owner.userId,
      claims: json('claims').as('claims')
    }).from(owner))
    .onConflictDoNothing()
    .returning({ userId: providerLinks.userId }))
  const add = db.with(owner, link).update(users).set(noted(owner.newEmail)).from(owner)
    .innerJoin(link, eq(link.userId, owner.userId))
    .where(eq(users.userId, owner.userId))
    .returning(getTableColumns(users))
    .prepare(UNNAMED)

  return async (userId, identity, generation) => {
    const [row] = await database.run(() =>
      add.execute({ userId, generation: generation ?? null, ...notesOf(identity) }))
    return userOf(row)
  }
}

function removeLink ({ db }: PostgresDatabase, endings: PostgresEndings): Accounts['removeLink'] {
  // Locked rows are counted as they are after the wait: of two removals at once, the second sees
  // what the first has left.
  const owner = db.$with('owner').as(db.select({ userId: users.userId }).from(users).where(isUser).for('no key update'))
  const before = db.$with('before').as(db.select(getTableColumns(providerLinks)).from(providerLinks)
    .innerJoin(owner, eq(owner.userId, providerLinks.userId))
    .for('update', { of: providerLinks }))
  const removed = db.$with('removed').as(db.delete(providerLinks)
    .where(and(
      eq(providerLinks.userId, USER_ID),
      eq(providerLinks.provider, given('provider')),
      sql`(${db.select({ count: count() }).from(before)}) > 1`
    ))
    .returning({ provider: providerLinks.provider }))
  const password = db.$with('password').as(db.delete(credentials)
    .where(and(
      eq(credentials.userId, USER_ID),
      sql`exists (${db.select({ one: sql`1` }).from(removed).where(eq(removed.provider, 'local'))})`
    )))
  const voucher = db.$with('voucher').as(db.update(users)
    .set({ extras: sql`${vouchedBy(OTHER_VOUCHERS)} || ${ENDED_SESSIONS}` })
    .where(and(isUser, sql`exists (${db.select({ one: sql`1` }).from(removed)})`))
    .returning({ userId: users.userId }))
  const ending = recordedEnding(db, sql`${voucher}`)
  const remove = db.with(owner, before, removed, password, voucher, ending).select().from(before)
    .orderBy(byCodePoints(before.provider))
    .prepare(UNNAMED)

  return async (userId, provider) => {
    const links = await endings.run(ending => remove.execute({ userId, provider, now: secondsNow(), ...ending }))
    return linksWithout(links, provider)
  }
}

function deleteUser (database: PostgresDatabase): Accounts['deleteUser'] {
  const remove = database.db.delete(users).where(isUser).returning({ userId: users.userId }).prepare(UNNAMED)

  return async userId => {
    const deleted = await database.run(() => unlessInUse(remove.execute({ userId })))
    if (deleted.length === 0) throw new AuthError('unknown_user')
  }
}

function admitUser (database: PostgresDatabase): Accounts['admitUser'] {
  const admit = database.db.update(users)
    .set({ extras: sql`${users.extras} - 'is_new'` })
    .where(isNewUser)
    .returning({ userId: users.userId })
    .prepare(UNNAMED)

  return async userId => {
    const admitted = await database.run(() => admit.execute({ userId }))
    return admitted.length > 0
  }
}

function deleteNewUser (database: PostgresDatabase): Accounts['deleteNewUser'] {
  const remove = database.db.delete(users).where(isNewUser).prepare(UNNAMED)

  return async userId => {
    await database.run(() => unlessInUse(remove.execute({ userId })))
  }
}

function replacePasswordHash (database: PostgresDatabase): Accounts['replacePasswordHash'] {
  const replace = database.db.update(credentials)
    .set({ pwHash: sql`${given('next')}` })
    .where(and(eq(credentials.userId, USER_ID), eq(credentials.pwHash, given('current'))))
    .prepare(UNNAMED)

  return async (userId, current, next) => {
    await database.run(() => replace.execute({ userId, current, next }))
  }
}

function grant (database: PostgresDatabase): Accounts['grant'] {
  const change = changeClaims(database, sql`${users.claims} || ${json('claims')}`)
  return (userId, claims) => change({ userId, claims })
}

function withdraw (database: PostgresDatabase): Accounts['withdraw'] {
  const names = sql`array(select jsonb_array_elements_text(${json('names')}))`
  const change = changeClaims(database, sql`${users.claims} - ${names}`)
  return (userId, names) => change({ userId, names })
}

function changeClaims (database: PostgresDatabase, claims: SQL) {
  const change = database.db.update(users)
    .set({ claims })
    .where(isUser)
    .returning({ claims: users.claims })
    .prepare(UNNAMED)

  return async (given: { userId: string, claims?: unknown, names?: unknown }) => {
    const [row] = await database.run(() => change.execute(given))
    if (row === undefined) throw new AuthError('unknown_user')
    return row.claims
  }
}

/**
 * @throws AuthError `user_in_use` when a table of the application refers to the user and forbids
 * the deletion
 */
export async function unlessInUse<T> (deletion: Promise<T>): Promise<T> {
  try {
    return await deletion
  } catch (error) {
    if (isForeignKeyViolation(error)) throw new AuthError('user_in_use', { cause: causeOf(error) })
    throw error
  }
}

function notesOf ({ provider, subject, claims, verifiedEmail }: LinkedIdentity) {
  return { provider, subject, claims, name: claims.name ?? null, email: claims.email ?? null, verifiedEmail }
}

/**
 * An identity's verified e-mail when the user takes it: the user has none, has this one, or it is
 * new at the provider; and no other user has it. Else null.
 */
function newEmail (db: PostgresDrizzle, hasChanged: SQL = sql`false`): SQL {
  const other = alias(users, 'other')
  const isFree = notExists(db.select({ one: sql`1` }).from(other)
    .where(and(eq(other.email, given('verifiedEmail')), ne(other.userId, users.userId))))
  const isDue = or(isNull(users.email), eq(users.email, given('verifiedEmail')), hasChanged)
  return sql`case when ${and(isFree, isDue)} then ${given('verifiedEmail')}::text end`
}

const VOUCHER = sql`jsonb_build_array(${given('provider')}::text)`
const OTHER_VOUCHERS = sql`${VOUCHERS} - ${given('provider')}::text`

/**
 * What an identity changes about a user. The name stays when the identity has none, the e-mail when
 * `newEmail` is null.
 */
function noted (newEmail: SQLWrapper) {
  const vouchers = sql`case
    when ${newEmail} is null then ${OTHER_VOUCHERS}
    when ${newEmail} <> ${users.email} or ${users.email} is null then ${VOUCHER}
    when ${VOUCHERS} @> ${VOUCHER} then ${VOUCHERS}
    else ${VOUCHERS} || ${VOUCHER}
  end`
  return {
    name: sql`case when ${users.extras} -> 'name_set' is null then coalesce(${given('name')}, ${users.name})
      else ${users.name} end`,
    email: sql`coalesce(${newEmail}, ${users.email})`,
    extras: vouchedBy(vouchers)
  }
}
