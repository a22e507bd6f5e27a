import {
  and, count, desc, eq, getTableColumns, gt, inArray, lt, not, oneTimeEntries, sql
} from '../../drizzle/sqlite.js'
import { excluded, given, givenAll } from '../drizzle.js'
import { type OneTimeEntries, RECORDS_OF_USE, TAKEN } from '../one-time-entries.js'
import type { Values } from '../sql-database.js'
import type { SqliteDatabase } from './database.js'

const { hash, ...columns } = getTableColumns(oneTimeEntries)
const { kind, owner, content, attempts, startedAt } = columns

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

export function sqliteEntries (database: SqliteDatabase): OneTimeEntries {
  const insert = database.prepared(db => db.insert(oneTimeEntries)
    .values({ ...givenAll({ hash, ...columns }), attempts: 0 })
    .onConflictDoUpdate({ target: hash, set: excluded(columns) }))
  const removeOldest = database.prepared(db => db.delete(oneTimeEntries)
    .where(inArray(hash, db.select({ hash }).from(oneTimeEntries)
      .where(and(isOfOwner, not(eq(hash, given('hash')))))
      .orderBy(desc(startedAt))
      .limit(Number.MAX_SAFE_INTEGER)
      .offset(given('others')))))
  const found = database.prepared(db => db.select({ content }).from(oneTimeEntries)
    .where(and(isEntry, isOfOwner)))
  const take = database.prepared(db => db.update(oneTimeEntries)
    .set({ kind: sql`${given('kind')} || ${TAKEN}`, startedAt: sql`${given('now')}` })
    .where(and(isEntry, inArray(owner, sql`(select value from json_each(${given('owners')}))`)))
    .returning({ content }))
  const taken = database.prepared(db => db.select({ startedAt }).from(oneTimeEntries).where(and(isEntry, isOfOwner)))
  const noteAttempt = database.prepared(db => db.update(oneTimeEntries).set({ attempts: sql`${attempts} + 1` })
    .where(and(isEntry, isOfOwner, lt(attempts, given('most'))))
    .returning({ content }))
  const counted = database.prepared(db => db.select({ entries: count() }).from(oneTimeEntries)
    .where(and(isOfOwner, gt(startedAt, given('since')))))
  const countOf = (values: Values): number => Number(counted().get(values)?.entries)

  return {
    // After a crash of the machine a sign-in starts again, and the session that an entry was taken
    // for is written after it.
    put: (entry, most) => database.transaction(() => {
      insert().run({ ...entry })
      // Counting is a fifth of what sorting costs where there is nothing to remove.
      if (countOf({ ...entry, since: 0 }) > most) removeOldest().run({ ...entry, others: most - 1 })
    }, { isSynced: RECORDS_OF_USE.includes(entry.kind) }),
    find: entry => database.read(() => found().get({ ...entry })?.content ?? null),
    take: (hash, kind, owners) => database.write(
      () => take().get({ hash, kind, owners: JSON.stringify(owners), now: Date.now() })?.content ?? null,
      { isSynced: false }
    ),
    takenAt: entry => database.read(() => taken().get({ ...entry, kind: entry.kind + TAKEN })?.startedAt ?? null),
    attempt: (entry, most) => database.write(() => noteAttempt().get({ ...entry, most })?.content ?? null),
    count: (owner, kind, since) => database.read(() => countOf({ owner, kind, since }))
  }
}
