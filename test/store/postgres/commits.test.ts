import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { USED_REGISTRATION } from '../../../lib/session/store.js'
import type { SqlAuthStore } from '../../../lib/engines/sql.js'
import { clientOf } from '../../helpers/postgres.js'
import { type Database, type Run, database, open } from './database.js'

t.test('commits wait for the disk, but for those of one-time entries that record no use', async t => {
  const { url, run } = await waitingDatabase(t)
  const store = open(t, url)
  await use(store)
  const commits = await noteCommits(run)

  await use(store)
  t.strictSame(await commits(), [
    { relation: 'svc_auth_pending', operation: 'INSERT', commit: 'on' },
    { relation: 'svc_auth_pending', operation: 'INSERT', commit: 'off' },
    { relation: 'svc_auth_pending', operation: 'UPDATE', commit: 'on' },
    { relation: 'svc_auth_pending', operation: 'UPDATE', commit: 'off' },
    { relation: 'svc_auth_sessions', operation: 'INSERT', commit: 'on' }
  ])
})

t.test('on a client of the application all commits are as the application has set them', async t => {
  const { url, run } = await waitingDatabase(t)
  const store = open(t, clientOf(t, url))
  await use(store)
  const commits = await noteCommits(run)

  await use(store)
  t.strictSame((await commits()).map(({ commit }) => commit), Array(5).fill('on'))
})

/** A database whose commits wait for the disk, which is the default of Postgres. */
async function waitingDatabase (t: Test): Promise<Database> {
  const ofTest = await database(t)
  await ofTest.run(`alter database "${new URL(ofTest.url).pathname.slice(1)}" set synchronous_commit = on`)
  return ofTest
}

/** Records a use, writes a session, and puts, tries and takes an entry. */
async function use ({ entries, sessions }: SqlAuthStore): Promise<void> {
  const [owner, now] = [randomUUID(), Date.now()]
  const entry = { hash: randomUUID(), kind: 'sign-in', owner, content: {}, startedAt: now }
  await entries.put({ ...entry, hash: randomUUID(), kind: USED_REGISTRATION }, 1)
  await entries.put(entry, 8)
  await entries.attempt(entry, 5)
  await entries.take(entry.hash, entry.kind, [owner])
  await sessions.insert({ idHash: owner, user: null, data: null, userAgent: null, createdAt: now, expiresAt: now + 60_000 }, null)
}

/** Lets the database note how the writes of entries and sessions are committed. */
async function noteCommits (run: Run): Promise<() => ReturnType<Run>> {
  await run(`
    create table seen (id serial, relation text, operation text, commit text);
    create function note() returns trigger language plpgsql as $$ begin
      insert into seen (relation, operation, commit) values (tg_table_name, tg_op, current_setting('synchronous_commit'));
      return coalesce(new, old);
    end $$;
    create trigger note before insert or update or delete on svc_auth_pending for each row execute function note();
    create trigger note before insert or update or delete on svc_auth_sessions for each row execute function note()`)
  return () => run('select relation, operation, commit from seen order by id')
}
