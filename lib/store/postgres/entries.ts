import { and, desc, eq, gt, inArray, lt, not, oneTimeEntries, sql } from '../../drizzle/postgres.js'
import { REPLACED_ENTRY } from '../session-rows.js'
import type { EntryContent, OneTimeEntries } from '../one-time-entries.js'
import type { PostgresDatabase } from './database.js'
import { UNNAMED, given, json } from './statements.js'

const { hash, kind, owner, content, attempts, startedAt } = oneTimeEntries

const isEntry = and(eq(hash, given('hash')), eq(kind, given('kind')))
const isOfOwner = and(eq(owner, given('owner')), eq(kind, given('kind')))

/** Keeps one-time entries on Postgres: each operation is one statement. */
export function postgresEntries (database: PostgresDatabase): OneTimeEntries {
  const { db } = database
  // The new one is not among those that the statement sees.
  const oldest = db.$with('oldest').as(db.delete(oneTimeEntries)
    .where(inArray(hash, db.select({ hash }).from(oneTimeEntries)
      .where(and(isOfOwner, not(eq(hash, given('hash')))))
      .orderBy(desc(startedAt))
      .offset(given('others')))))
  const insert = db.with(oldest).insert(oneTimeEntries)
    .values({
      hash: given('hash'),
      kind: given('kind'),
      owner: given('owner'),
      content: json('content'),
      attempts: 0,
      startedAt: given('startedAt')
    })
    .onConflictDoUpdate({ target: hash, set: REPLACED_ENTRY })
    .prepare(UNNAMED)
  const byKey = db.select({ content }).from(oneTimeEntries).where(and(isEntry, isOfOwner)).prepare(UNNAMED)
  const owners = sql`(select jsonb_array_elements_text(${json('owners')}))`
  const remove = db.delete(oneTimeEntries).where(and(isEntry, inArray(owner, owners)))
    .returning({ content })
    .prepare(UNNAMED)
  const count = db.update(oneTimeEntries).set({ attempts: sql`${attempts} + 1` })
    .where(and(isEntry, isOfOwner, lt(attempts, given('most'))))
    .returning({ content })
    .prepare(UNNAMED)
  const one = database.prepared(
    db.select({ hash }).from(oneTimeEntries).where(and(isOfOwner, gt(startedAt, given('since')))).limit(1),
    { hash },
    'reads'
  )
  const contentOf = async (ask: () => Promise<Array<{ content: EntryContent }>>): Promise<EntryContent | null> => {
    return (await database.run(ask))[0]?.content ?? null
  }

  return {
    async put (entry, most) {
      await database.run(() => insert.execute({ ...entry, others: most - 1 }))
    },
    find: async entry => contentOf(() => byKey.execute({ ...entry })),
    take: async (hash, kind, owners) => contentOf(() => remove.execute({ hash, kind, owners })),
    attempt: async (entry, most) => contentOf(() => count.execute({ ...entry, most })),
    has: async (owner, kind, since) => (await database.run(() => one({ owner, kind, since }))).length > 0
  }
}
