import {
  type SQL, and, count, desc, eq, getTableColumns, gt, inArray, lt, not, oneTimeEntries, sql
} from '../../drizzle/postgres.js'
import { excluded, given } from '../drizzle.js'
import { type EntryContent, type OneTimeEntries, RECORDS_OF_USE, TAKEN } from '../one-time-entries.js'
import type { PostgresDatabase } from './database.js'
import { NUMBER, json } from './statements.js'

const { hash, ...columns } = getTableColumns(oneTimeEntries)
const { kind, owner, content, attempts, startedAt } = columns

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

/** Each operation is one statement. */
export function postgresEntries (database: PostgresDatabase): OneTimeEntries {
  const insertion = (condition: SQL, how: 'alone' | 'entries') => database.prepared(db => {
    // The new one is not among those that the statement sees.
    const oldest = db.$with('oldest').as(db.delete(oneTimeEntries)
      .where(inArray(hash, db.select({ hash }).from(oneTimeEntries)
        .where(and(isOfOwner, not(eq(hash, given('hash')))))
        .orderBy(desc(startedAt))
        .offset(given('others')))))
    return db.with(oldest).insert(oneTimeEntries)
      .select(sql`select ${given('hash')}, ${given('kind')}, ${given('owner')}, ${json('content')}, 0,
        ${given('startedAt')}::bigint where ${condition}`)
      .onConflictDoUpdate({ target: hash, set: excluded(columns) })
      .returning({ hash })
  }, { hash }, how)
  const insert = insertion(database.asyncCommit, 'entries')
  const insertRecord = insertion(sql`true`, 'alone')
  const byKey = database.prepared(db => db.select({ content }).from(oneTimeEntries).where(and(isEntry, isOfOwner)))
  const owners = sql`(select jsonb_array_elements_text(${json('owners')}))`
  const take = database.prepared(
    db => db.update(oneTimeEntries)
      .set({ kind: sql`${given('kind')} || ${TAKEN}`, startedAt: sql`${given('now')}::bigint` })
      .where(and(isEntry, inArray(owner, owners), database.asyncCommit))
      .returning({ content }),
    { content },
    'entries'
  )
  const taken = database.prepared(db => db.select({ startedAt }).from(oneTimeEntries).where(and(isEntry, isOfOwner)))
  const noteAttempt = database.prepared(db => db.update(oneTimeEntries).set({ attempts: sql`${attempts} + 1` })
    .where(and(isEntry, isOfOwner, lt(attempts, given('most'))))
    .returning({ content }))
  const counted = database.prepared(
    db => db.select({ entries: count() }).from(oneTimeEntries).where(and(isOfOwner, gt(startedAt, given('since')))),
    { entries: NUMBER },
    'reads'
  )
  const contentOf = (rows: Array<{ content: EntryContent }>): EntryContent | null => rows[0]?.content ?? null

  return {
    // After a crash of the machine a sign-in starts again, and the session that an entry was taken
    // for is written after it.
    async put (entry, most) {
      const statement = RECORDS_OF_USE.includes(entry.kind) ? insertRecord : insert
      await statement({ ...entry, others: most - 1 })
    },
    find: async entry => contentOf(await byKey({ ...entry })),
    take: async (hash, kind, owners) => contentOf(await take({ hash, kind, owners, now: Date.now() })),
    takenAt: async entry => (await taken({ ...entry, kind: entry.kind + TAKEN }))[0]?.startedAt ?? null,
    attempt: async (entry, most) => contentOf(await noteAttempt({ ...entry, most })),
    count: async (owner, kind, since) => Number((await counted({ owner, kind, since }))[0]?.entries)
  }
}
