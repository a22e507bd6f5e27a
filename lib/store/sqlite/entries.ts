import { and, desc, eq, gt, inArray, lt, not, oneTimeEntries, sql } from '../../drizzle/sqlite.js'
import { REPLACED_ENTRY } from '../session-rows.js'
import { type OneTimeEntries, RECORDS_OF_USE } from '../one-time-entries.js'
import { type SqliteDatabase, given } from './database.js'

const { hash, kind, owner, content, attempts, startedAt } = oneTimeEntries

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

/** Keeps one-time entries on SQLite. */
export function sqliteEntries (database: SqliteDatabase): OneTimeEntries {
  const insert = database.prepared(db => db.insert(oneTimeEntries)
    .values({
      hash: given('hash'),
      kind: given('kind'),
      owner: given('owner'),
      content: given('content'),
      attempts: 0,
      startedAt: given('startedAt')
    })
    .onConflictDoUpdate({ target: hash, set: REPLACED_ENTRY })
    .prepare())
  const removeOldest = database.prepared(db => db.delete(oneTimeEntries)
    .where(inArray(hash, db.select({ hash }).from(oneTimeEntries)
      .where(and(isOfOwner, not(eq(hash, given('hash')))))
      .orderBy(desc(startedAt))
      .limit(Number.MAX_SAFE_INTEGER)
      .offset(given('others'))))
    .prepare())
  const found = database.prepared(db => db.select({ content }).from(oneTimeEntries)
    .where(and(isEntry, isOfOwner))
    .prepare())
  const remove = database.prepared(db => db.delete(oneTimeEntries)
    .where(and(isEntry, inArray(owner, sql`(select value from json_each(${given('owners')}))`)))
    .returning({ content })
    .prepare())
  const count = database.prepared(db => db.update(oneTimeEntries).set({ attempts: sql`${attempts} + 1` })
    .where(and(isEntry, isOfOwner, lt(attempts, given('most'))))
    .returning({ content })
    .prepare())
  const one = database.prepared(db => db.select({ hash }).from(oneTimeEntries)
    .where(and(isOfOwner, gt(startedAt, given('since'))))
    .limit(1)
    .prepare())

  return {
    // After a crash of the machine a sign-in starts again, and the session that an entry was taken
    // for is written after it.
    put: (entry, most) => database.write(() => database.db.transaction(() => {
      insert().run({ ...entry })
      removeOldest().run({ ...entry, others: most - 1 })
    }, { behavior: 'immediate' }), undefined, RECORDS_OF_USE.includes(entry.kind)),
    find: entry => database.read(() => found().get({ ...entry })?.content ?? null),
    take: (hash, kind, owners) => database.writeUnsynced(() =>
      remove().get({ hash, kind, owners: JSON.stringify(owners) })?.content ?? null
    ),
    attempt: (entry, most) => database.write(() => count().get({ ...entry, most })?.content ?? null),
    has: (owner, kind, since) => database.read(() => one().get({ owner, kind, since }) !== undefined)
  }
}
