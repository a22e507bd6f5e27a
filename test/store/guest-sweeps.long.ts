import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Browser } from '../helpers/browser.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type TestDatabase, HALF_MADE, postgresDatabase, sqliteDatabase } from './database.js'
import { type GuestSweeps, startGuestApp, sweepsOn } from './guest-process.js'

t.setTimeout(300_000)

t.test('guests become users beside sweeps on Postgres', async t => testSweeps(t, postgresDatabase(await emptyDatabase(t))))
t.test('guests become users beside sweeps on an SQLite file', async t => testSweeps(t, sqliteDatabase(t)))

const HOURS = 2 * 60 * 60_000

/** Within so many milliseconds all sessions of guests end, and all sign-ins begin. */
const WINDOW = 500

/** Guests whose session is about to end become users, while sweeps run in this process and in another one. */
async function testSweeps (t: Test, database: TestDatabase): Promise<void> {
  const { target, query } = database
  const { app, close } = await startGuestApp(target)
  t.teardown(close)
  const other = await forkSweeps(t, target)
  const seen = { promoted: 0, deleted: 0 }

  for (let round = 0; round < 15; round++) {
    const guests = await withClock(-HOURS, async () => Promise.all(Array.from({ length: 40 }, async () => {
      const browser = new Browser(app)
      return { browser, userId: String((await browser.post('/basket')).json().userId) }
    })))
    const start = Date.now() + 200
    for (const { userId } of guests) {
      await query(`update svc_auth_sessions set expires_at = ${start + Math.round(Math.random() * WINDOW)} where user_id = '${userId}'`)
    }
    const own = sweepsOn(target)
    const during = async (sweeps: GuestSweeps) => {
      for (let turn = 0; turn < 4; turn++) {
        await wait(Math.random() * WINDOW / 4)
        await sweeps.begin()
      }
    }

    await wait(Math.max(1, start - Date.now()))
    const [answers] = await Promise.all([
      Promise.all(guests.map(async ({ browser }, index) => {
        await wait(Math.random() * WINDOW)
        return browser.post('/auth/local/register', { email: `ada-${round}-${index}@example.com`, password: 'correct horse' })
      })),
      during(own),
      during(other)
    ])
    const told = [...await own.end(), ...await other.end()]
    await own.close()

    const present = (await query('select user_id from svc_auth_users')).map(row => row.user_id)
    const answered = answers.flatMap(answer => answer.statusCode === 201 ? [answer.json().userId] : [])
    t.strictSame(answered.filter(userId => !present.includes(userId)), [], 'nobody who became a user is deleted')
    t.strictSame(answered.filter(userId => told.includes(userId)), [], 'nor their rows')
    const left = guests.filter(({ userId }) => present.includes(userId) && !answered.includes(userId))
    t.strictSame(left, [], 'all others are')
    t.strictSame(answers.filter(({ statusCode }) => statusCode >= 500).map(({ body }) => body), [])
    seen.promoted += guests.filter(({ userId }) => answered.includes(userId)).length
    seen.deleted += guests.filter(({ userId }) => told.includes(userId)).length
  }

  t.strictSame(await query(HALF_MADE), [], 'nothing is half-made')
  t.comment(JSON.stringify(seen))
  for (const [what, count] of Object.entries(seen)) t.ok(count > 0, `some are ${what}`)
}

async function withClock<T> (ahead: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date
  Date.now = () => now() + ahead
  try {
    return await work()
  } finally {
    Date.now = now
  }
}

async function forkSweeps (t: Test, target: string): Promise<GuestSweeps> {
  const child = fork(fileURLToPath(new URL('guest-process.ts', import.meta.url)), [target], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const message = async (): Promise<unknown> => {
    const [message]: unknown[] = await Promise.race([
      once(child, 'message'),
      exited.then(([code]) => { throw new Error(`the process that sweeps ended with ${code}`) })
    ])
    return message
  }
  const ask = async (what: 'begin' | 'end'): Promise<unknown> => {
    const answer = message()
    child.send(what)
    return answer
  }
  const close = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    await exited
  }
  t.teardown(close)
  await message()
  return {
    begin: async () => { await ask('begin') },
    end: async () => await ask('end') as string[],
    close
  }
}
