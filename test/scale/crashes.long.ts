/** Attack 85: what processes have acknowledged of sessions is kept, whatever ends them or their database. */
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { emptyDatabase, startPostgres } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { isThorough } from '../helpers/thorough.js'
import { Visitor } from '../helpers/visitor.js'
import { LedgerUser, Refusal } from './session-ledger.js'
import { SessionProcess } from './session-process.js'

t.setTimeout(1_800_000)

const USERS = 6
const MOST_STEPS = 60
/** Longer than a write takes. */
const MOST_MILLISECONDS = 5
/** Above the limit of five seconds, for a machine that is busy. */
const AT_MOST_MS = 15_000

async function register (origin: string): Promise<LedgerUser[]> {
  return Promise.all(Array.from({ length: USERS }, async (_, index) => LedgerUser.register(origin, `user-${index}`)))
}

/** Asks user after user: thousands of requests at once would wait longer than the five seconds of a call. */
async function wrongAt (origin: string, users: readonly LedgerUser[], since: readonly number[] = []): Promise<string[]> {
  const wrong: string[] = []
  for (const [index, user] of users.entries()) wrong.push(...await user.wrongAt(origin, user.sessions.slice(since[index])))
  return wrong
}

/** Lets so many milliseconds pass, to the microsecond. */
function spin (milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

for (const [name, rounds, database] of [
  ['Postgres', isThorough ? 200 : 20, emptyDatabase],
  ['an SQLite file', isThorough ? 30 : 10, async (t: Test) => join(t.testdir(), 'sessions.db')]
] as const) {
  t.test(`a process that is killed ${rounds} times while it serves users loses nothing that it acknowledged, on ${name}`, async t => {
    const target = await database(t)
    const survivor = await SessionProcess.start(t, { target })
    const users = await register(survivor.origin)
    const startNext = async () => SessionProcess.start(t, { target, isBare: true })
    let next = startNext()
    let steps = 0

    for (let round = 1; round <= rounds; round++) {
      const killed = await next
      if (round < rounds) next = startNext()
      const since = users.map(({ sessions }) => sessions.length)
      const enough = Promise.withResolvers<void>()
      let left = 1 + Math.floor(Math.random() * MOST_STEPS)
      const over = new AbortController()
      const requests = users.map(async user => {
        while (!over.signal.aborted) {
          await user.step(killed.origin)
          steps++
          if (--left === 0) enough.resolve()
        }
      })
      const ended = Promise.allSettled(requests)

      await Promise.race([enough.promise, ...requests])
      spin(Math.random() * MOST_MILLISECONDS)
      over.abort()
      killed.kill()

      const outcomes = await ended
      const answers = outcomes.flatMap(outcome => outcome.status === 'rejected' && outcome.reason instanceof Refusal ? [outcome.reason.status] : [])
      t.strictSame([answers, await wrongAt(survivor.origin, users, since)], [[], []], `round ${round}, after ${steps} steps`)
    }
    t.strictSame(await wrongAt(survivor.origin, users), [], `in the end, with ${users.flatMap(({ sessions }) => sessions).length} sessions`)
  })
}

t.test('processes survive what happens to their Postgres', async t => {
  const server = await startPostgres(t)
  const target = await server.createDatabase()
  const processes = [await SessionProcess.start(t, { target }), await SessionProcess.start(t, { target })]
  const [one, other] = processes as [SessionProcess, SessionProcess]
  const users = await register(one.origin)

  const STRIKES: Array<[what: string, strike: () => Promise<void>]> = [
    ['is killed', async () => {
      server.signal('SIGKILL')
      await assertUnavailable()
      await server.start()
    }],
    ...[7, 30].map((seconds): [string, () => Promise<void>] => [`is frozen for ${seconds} seconds`, async () => {
      const over = wait(seconds * 1000)
      server.signal('SIGSTOP')
      try {
        await assertUnavailable()
        await over
      } finally {
        server.signal('SIGCONT')
      }
    }])
  ]

  /** A guard does not guess: it answers that sessions cannot be reached. */
  const assertUnavailable = async (): Promise<void> => {
    const cookies = users.flatMap(({ sessions }) => sessions.slice(-1).map(({ cookie }) => cookie))
    const start = performance.now()
    const answers = await Promise.all(cookies.map(async (cookie, index) =>
      new Visitor(index % 2 === 0 ? one.origin : other.origin, cookie).get('/private')))
    const took = performance.now() - start
    t.strictSame(new Set(answers.map(({ status, body }) => `${status} ${body.code}`)), new Set(['503 unavailable']))
    t.ok(took < AT_MOST_MS, `after ${Math.round(took)} ms`)
  }

  for (const [what, strike] of STRIKES) {
    await t.test(`when it ${what}, requests are unavailable within seconds, and all goes on afterwards by itself`, async t => {
      const over = new AbortController()
      const refused: number[] = []
      const requests = users.map(async (user, index) => {
        while (!over.signal.aborted) {
          const start = performance.now()
          await user.step(index % 2 === 0 ? one.origin : other.origin).catch((error: unknown) => {
            refused.push(performance.now() - start)
            // A page to come back from has no answer with a status.
            if (error instanceof Refusal) t.equal(error.status, 503)
          })
        }
      })
      await Promise.all(users.map(async user => isSoon(async () => user.sessions.length > 0)))

      await strike()
      const works = await isSoon(async () => {
        const answers = await Promise.all(processes.map(async ({ origin }) => new Visitor(origin).get('/auth/mine/login')))
        return answers.every(({ status }) => status === 302)
      })
      over.abort()
      await Promise.all(requests)

      t.ok(works, 'all goes on')
      t.ok(refused.length > 0, 'requests were refused')
      t.ok(Math.max(...refused) < AT_MOST_MS, `the longest was refused after ${Math.round(Math.max(...refused))} ms`)
      for (const { origin } of processes) t.strictSame(await wrongAt(origin, users), [], 'sessions are as their users know them')
    })
  }
})
