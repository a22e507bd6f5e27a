import { type SQL, type SQLWrapper, and, count, eq, getTableColumns, isNull, ne, notExists, or, sql } from 'drizzle-orm'
import { type PgDatabase, type PgQueryResultHKT, alias } from 'drizzle-orm/pg-core'
import { credentials, providerLinks, users } from '../../schema/postgres.js'

export type PostgresDatabase = PgDatabase<PgQueryResultHKT>

/** Under a name, some drivers leave a statement with the server: then it fails behind a pooler, and after a migration. */
const UNNAMED = ''

/** What a statement is given when it is run, by name. */
const given = sql.placeholder

const isUser = eq(users.userId, given('userId'))
const isNewUser = and(isUser, sql`${users.extras} -> 'is_new' is not null`)
const isLink = and(eq(providerLinks.provider, given('provider')), eq(providerLinks.subject, given('subject')))

const VOUCHER = sql`jsonb_build_array(${given('provider')}::text)`
const OTHER_VOUCHERS = sql`coalesce(${users.extras} -> 'email_verified_by', '[]') - ${given('provider')}::text`

export type Prepared = ReturnType<typeof prepare>

/** The statements, built once: Drizzle takes longer for that than the server to run one. */
export function prepare (db: PostgresDatabase) {
  const userId = { userId: users.userId }
  const claims = { claims: users.claims }
  return {
    userById: db.select().from(users).where(isUser).prepare(UNNAMED),
    userByEmail: db.select().from(users).where(eq(users.email, given('email'))).prepare(UNNAMED),
    userByLink: db.select(getTableColumns(users)).from(providerLinks)
      .innerJoin(users, eq(users.userId, providerLinks.userId))
      .where(isLink)
      .prepare(UNNAMED),
    links: db.select().from(providerLinks).where(eq(providerLinks.userId, given('userId'))).orderBy(byCodePoints(providerLinks.provider)).prepare(UNNAMED),
    credential: db.select({ user: users, link: providerLinks, passwordHash: credentials.pwHash }).from(providerLinks)
      .innerJoin(users, eq(users.userId, providerLinks.userId))
      .innerJoin(credentials, eq(credentials.userId, providerLinks.userId))
      .where(isLink)
      .prepare(UNNAMED),

    refreshIdentity: refreshIdentity(db),
    createUser: createUser(db),
    addLink: addLink(db),
    removeLink: removeLink(db),

    admitUser: db.update(users).set({ extras: sql`${users.extras} - 'is_new'` }).where(isNewUser).returning(userId).prepare(UNNAMED),
    deleteUser: db.delete(users).where(isUser).returning(userId).prepare(UNNAMED),
    deleteNewUser: db.delete(users).where(isNewUser).returning(userId).prepare(UNNAMED),
    replacePasswordHash: db.update(credentials)
      .set({ pwHash: sql`${given('next')}` })
      .where(and(eq(credentials.userId, given('userId')), eq(credentials.pwHash, given('current'))))
      .prepare(UNNAMED),

    grant: db.update(users).set({ claims: sql`${users.claims} || ${json('claims')}` }).where(isUser).returning(claims).prepare(UNNAMED),
    withdraw: db.update(users)
      .set({ claims: sql`${users.claims} - array(select jsonb_array_elements_text(${json('names')}))` })
      .where(isUser)
      .returning(claims)
      .prepare(UNNAMED)
  }
}

function refreshIdentity (db: PostgresDatabase) {
  // A locked link is read as it is after the wait: of two sign-ins at once, the second sees the claims of the first.
  const hasChanged = sql`${providerLinks.claims} ->> 'email' is distinct from ${given('email')}`
  const owner = db.$with('owner').as(db.select({ userId: users.userId, newEmail: newEmail(db, hasChanged) }).from(users)
    .innerJoin(providerLinks, eq(providerLinks.userId, users.userId))
    .where(isLink)
    .for('no key update', { of: [users, providerLinks] }))
  const link = db.$with('link').as(db.update(providerLinks).set({ claims: json('claims') }).from(owner)
    .where(and(isLink, eq(providerLinks.userId, owner.userId))))
  return db.with(owner, link).update(users).set(noted(owner.newEmail)).from(owner)
    .where(eq(users.userId, owner.userId))
    .returning(getTableColumns(users))
    .prepare(UNNAMED)
}

function createUser (db: PostgresDatabase) {
  const user = db.$with('new_user').as(db.insert(users)
    .values({ userId: given('userId'), email: given('email'), name: given('name'), claims: json('claims'), extras: json('extras') })
    .returning())
  const link = db.$with('new_link').as(db.insert(providerLinks)
    .values({ provider: given('provider'), subject: given('subject'), userId: given('userId'), claims: json('linkClaims') }))
  const passwordHash = sql<string>`${given('passwordHash')}::text`
  const credential = db.$with('new_credential').as(db.insert(credentials)
    .select(db.select({ userId: user.userId, pwHash: passwordHash.as('pw_hash') }).from(user).where(sql`${passwordHash} is not null`)))
  return db.with(user, link, credential).select().from(user).prepare(UNNAMED)
}

function addLink (db: PostgresDatabase) {
  const owner = db.$with('owner').as(db.select({ userId: users.userId, newEmail: newEmail(db) }).from(users).where(isUser).for('no key update'))
  const link = db.$with('link').as(db.insert(providerLinks)
    .select(db.select({
      provider: sql`${given('provider')}`.as('provider'),
      subject: sql`${given('subject')}`.as('subject'),
      userId: owner.userId,
      claims: json('claims').as('claims')
    }).from(owner))
    .onConflictDoNothing()
    .returning({ userId: providerLinks.userId }))
  return db.with(owner, link).update(users).set(noted(owner.newEmail)).from(owner)
    .innerJoin(link, eq(link.userId, owner.userId))
    .where(eq(users.userId, owner.userId))
    .returning(getTableColumns(users))
    .prepare(UNNAMED)
}

function removeLink (db: PostgresDatabase) {
  // Locked rows are counted as they are after the wait: of two removals at once, the second sees what the first has left.
  const owner = db.$with('owner').as(db.select({ userId: users.userId }).from(users).where(isUser).for('no key update'))
  const before = db.$with('before').as(db.select(getTableColumns(providerLinks)).from(providerLinks)
    .innerJoin(owner, eq(owner.userId, providerLinks.userId))
    .for('update', { of: providerLinks }))
  const removed = db.$with('removed').as(db.delete(providerLinks)
    .where(and(
      eq(providerLinks.userId, given('userId')),
      eq(providerLinks.provider, given('provider')),
      sql`(${db.select({ count: count() }).from(before)}) > 1`
    ))
    .returning({ provider: providerLinks.provider }))
  const password = db.$with('password').as(db.delete(credentials)
    .where(and(
      eq(credentials.userId, given('userId')),
      sql`exists (${db.select({ one: sql`1` }).from(removed).where(eq(removed.provider, 'local'))})`
    )))
  const voucher = db.$with('voucher').as(db.update(users)
    .set({ extras: vouchedBy(OTHER_VOUCHERS) })
    .where(and(isUser, sql`exists (${db.select({ one: sql`1` }).from(removed)})`)))
  return db.with(owner, before, removed, password, voucher).select().from(before).orderBy(byCodePoints(before.provider)).prepare(UNNAMED)
}

/** An identity's verified e-mail if the user has none, has this one or it is new at the provider, and no other user has it; else null. */
function newEmail (db: PostgresDatabase, hasChanged: SQL = sql`false`): SQL.Aliased {
  const other = alias(users, 'other')
  const isFree = notExists(db.select({ one: sql`1` }).from(other).where(and(eq(other.email, given('verifiedEmail')), ne(other.userId, users.userId))))
  const isDue = or(isNull(users.email), eq(users.email, given('verifiedEmail')), hasChanged)
  return sql`case when ${and(isFree, isDue)} then ${given('verifiedEmail')}::text end`.as('new_email')
}

/** What an identity changes about a user. Without a name and without `newEmail`, which is null, both stay as they are. */
function noted (newEmail: SQLWrapper) {
  const vouchers = sql`case
    when ${newEmail} is null then ${OTHER_VOUCHERS}
    when ${newEmail} = ${users.email} then ${OTHER_VOUCHERS} || ${VOUCHER}
    else ${VOUCHER}
  end`
  return {
    name: sql`coalesce(${given('name')}, ${users.name})`,
    email: sql`coalesce(${newEmail}, ${users.email})`,
    extras: vouchedBy(vouchers)
  }
}

/** The notes about a user whose e-mail these providers vouch for: the rule is that of `vouchersAfter`. */
function vouchedBy (vouchers: SQL): SQL {
  return sql`${users.extras} || jsonb_build_object('email_verified', ${vouchers} <> '[]', 'email_verified_by', ${vouchers})`
}

/** JSON goes over as text: each driver has ideas of its own about parameters of the type jsonb. */
function json (name: string): SQL {
  return sql`${sql.param(given(name), { mapToDriverValue: JSON.stringify })}::text::jsonb`
}

/** The databases' own collations differ. */
function byCodePoints (column: SQLWrapper): SQL {
  return sql`${column} collate "C"`
}
