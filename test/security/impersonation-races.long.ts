/** Attack 193 with two processes: what ends an impersonation, beside its start and its end. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { Principal } from '../../lib/index.js'
import { startApp } from '../helpers/app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type Answer, Visitor } from '../helpers/visitor.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'
import { forkSupport, supportOptions } from './impersonation-process.js'

t.setTimeout(300_000)

const ROUNDS = 12
const PASSWORD = 'correct horse'
/** The longest wait of one side of a race, in milliseconds: about as long as one of its requests takes. */
const STAGGER_MS = 8

t.test('attack 193: races of impersonations on Postgres', async t => testRaces(t, postgresDatabase(await emptyDatabase(t))))
t.test('attack 193: races of impersonations on an SQLite file', async t => testRaces(t, sqliteDatabase(t)))

/** What ends sessions of a user, in a process of its own. */
const ENDS: Readonly<Record<string, (app: FastifyInstance, userId: string) => Promise<unknown>>> = {
  'a block': async ({ auth }, userId) => auth.block(userId),
  'a deletion': async ({ auth }, userId) => auth.deleteUser(userId),
  'a sign-out everywhere': async ({ auth }, userId) => auth.signOutEverywhere(userId)
}

/** A session of the store that has not ended. */
interface Row {
  id_hash: unknown
  user_id: string | null
  shown_user_id: string | null
}

async function testRaces (t: Test, database: TestDatabase): Promise<void> {
  const app = await startApp(t, supportOptions(database.target))
  const [one, other] = await Promise.all([forkSupport(t, database.target), forkSupport(t, database.target)])
  const at = (index: number, cookie?: string) => new Visitor(index % 2 === 0 ? one : other, cookie)

  const newUser = async (claims: Record<string, string> = {}): Promise<{ userId: string, email: string }> => {
    const email = `${randomUUID()}@example.com`
    const { userId } = await app.auth.createUser({ email, password: PASSWORD, claims })
    return { userId, email }
  }
  const newCase = async (round: number) => {
    const [sue, ada] = [await newUser({ role: 'support' }), await newUser()]
    const browser = at(round)
    t.equal((await browser.post('/auth/local/login', { email: sue.email, password: PASSWORD })).status, 200)
    return { sue, ada, browser, before: browser.cookie }
  }
  const start = async (visitor: Visitor, { userId }: { userId: string }): Promise<Answer> => visitor.post('/support', { userId })
  const end = async (visitor: Visitor): Promise<Answer> => visitor.post('/auth/local/impersonation/end', {})

  /** Whom a guard lets pass with a cookie, after the request that meets the end of an impersonation, in both processes. */
  const shownTo = async (cookie: string): Promise<Array<Principal | null>> => {
    const shown: Array<Principal | null> = []
    for (const index of [0, 1, 0, 1]) {
      const { status, body } = await at(index, cookie).get('/guarded')
      if (status !== 200 && status !== 401) throw new Error(`a guard answered ${status}`)
      shown.push(status === 200 ? (body as { principal: Principal }).principal : null)
    }
    return shown
  }
  const openRows = async (userId: string): Promise<Row[]> => {
    const rows = await database.query(`select id_hash, user_id, shown_user_id from svc_auth_sessions
      where ended_at is null and (user_id = '${userId}' or shown_user_id = '${userId}')`)
    return rows.map(row => row as unknown as Row)
  }

  /** Runs both at about one time, with a browser each that has the same cookie; returns their answers and all cookies. */
  const race = async (cookies: readonly string[], ...acts: ReadonlyArray<(visitor: Visitor) => Promise<Answer | void>>) => {
    const cookie = cookies.at(-1) ?? ''
    const browsers = acts.map((_, index) => at(index, cookie))
    const answers = await Promise.all(browsers.map(async (browser, index) => {
      await wait(Math.random() * STAGGER_MS)
      return acts[index]?.(browser)
    }))
    const odd = answers.filter(answer => answer !== undefined && ![200, 204, 400, 401, 403, 404].includes(answer.status))
    t.strictSame(odd, [], 'no other answer')
    return { answers, all: [...new Set([...cookies, ...browsers.map(({ cookie }) => cookie)])].filter(cookie => cookie !== '') }
  }

  for (const [phase, isStart] of [['start', true], ['end', false]] as const) {
    for (const [name, act] of Object.entries(ENDS)) {
      for (const whose of ['user', 'actor'] as const) {
        await t.test(`the ${phase} of an impersonation beside ${name} of the ${whose} leaves no session that shows them`, async t => {
          let together = 0
          for (let round = 0; round < ROUNDS; round++) {
            const { sue, ada, browser, before } = await newCase(round)
            if (!isStart) t.equal((await start(browser, ada)).status, 200)
            const ended = whose === 'user' ? ada : sue

            const { answers: [answer], all } = await race(
              [before, browser.cookie],
              async visitor => isStart ? start(visitor, ada) : end(visitor),
              async () => { await act(app, ended.userId) },
              // Neither a late save of the application nor a refresh restores what has ended.
              async visitor => visitor.post('/visits', {}),
              async visitor => visitor.get('/refreshed')
            )

            if (answer?.status === 200) together++
            const shown = (await Promise.all(all.map(shownTo))).flat()
            const generation = (await app.auth.findUser({ userId: ada.userId }))?.generation
            if (whose === 'actor') {
              t.strictSame(shown.filter(principal => principal !== null), [], `round ${round}: an ended actor sees nobody`)
            } else {
              // A start after a sign-out everywhere is a new one, of the generation that is the user's.
              const isLater = isStart && name === 'a sign-out everywhere'
              const ofUser = shown.filter(principal => principal?.userId === ada.userId)
              if (!isLater) t.strictSame(ofUser, [], `round ${round}: the user is shown to nobody`)
              else if (ofUser.length > 0) await assertGeneration(t, database, sue.userId, generation)
              const passing = (await Promise.all(all.map(shownTo))).filter(shown => shown.some(principal => principal !== null))
              t.ok(passing.length <= 1, `round ${round}: one cookie`)
              t.ok((await openRows(sue.userId)).length <= 1, `round ${round}: one row`)
            }
            t.strictSame((await openRows(ada.userId)).filter(({ user_id: id }) => id === ada.userId), [], 'no row is of the user who was shown')
          }
          t.comment(`${together} of ${ROUNDS} were answered 200`)
        })
      }
    }
  }

  const others: Readonly<Record<string, {
    /** Whether the session impersonates before. */
    begun: boolean
    acts: (setting: { sue: { email: string }, ada: { userId: string }, bob: { userId: string } }) => Parameters<typeof race>[1][]
    /**
     * Whether the second act signs out. One that arrives after the session was replaced ends nothing: knowing an old
     * cookie gives no power over the session that replaced it.
     */
    signsOut?: boolean
    /** The most rows that may be left, default 1: a sign-in replaces its session also where another request has. */
    most?: number
  }>> = {
    'two starts for one user': { begun: false, acts: ({ ada }) => [async visitor => start(visitor, ada), async visitor => start(visitor, ada)] },
    'starts for two users': { begun: false, acts: ({ ada, bob }) => [async visitor => start(visitor, ada), async visitor => start(visitor, bob)] },
    'an end and a start': { begun: true, acts: ({ bob }) => [end, async visitor => start(visitor, bob)] },
    'two ends': { begun: true, acts: () => [end, end] },
    'a start and a sign-in': {
      begun: false,
      most: 2,
      acts: ({ sue, ada }) => [
        async visitor => start(visitor, ada),
        async visitor => visitor.post('/auth/local/login', { email: sue.email, password: PASSWORD })
      ]
    },
    'a start and a sign-out': {
      begun: false, signsOut: true, acts: ({ ada }) => [async visitor => start(visitor, ada), async visitor => visitor.post('/auth/logout', {})]
    },
    'an end and a sign-out': { begun: true, signsOut: true, acts: () => [end, async visitor => visitor.post('/auth/logout', {})] }
  }
  for (const [name, { begun, acts, signsOut = false, most = 1 }] of Object.entries(others)) {
    await t.test(`${name} at once leave ${signsOut ? 'at most ' : ''}${most === 1 ? 'one row and one cookie' : 'a row for each, and no third'}`, async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const { sue, ada, browser, before } = await newCase(round)
        const bob = await newUser()
        if (begun) t.equal((await start(browser, ada)).status, 200)

        const { answers, all } = await race([before, browser.cookie], ...acts({ sue, ada, bob }))

        const statuses = answers.map(answer => answer?.status)
        const shown = await Promise.all(all.map(shownTo))
        const passing = shown.filter(principals => principals.some(principal => principal !== null))
        const rows = await openRows(sue.userId)
        t.equal(passing.length, rows.length, `round ${round}: cookies that pass, after ${statuses}`)
        const succeeded = statuses.filter(status => status === 200).length
        if (!signsOut) t.equal(rows.length, Math.min(most, succeeded), `round ${round}: rows, after ${statuses}`)
        else t.ok(rows.length <= (statuses[0] === 200 ? 1 : 0), `round ${round}: rows, after ${statuses}`)
        for (const principals of passing) {
          const [first] = principals
          t.strictSame(principals, principals.map(() => first), 'both processes show the same')
          const shownUserId = first?.impersonator === undefined ? null : first.userId
          t.ok(rows.some(row => row.shown_user_id === shownUserId), 'as a row says')
        }
        for (const cookie of all) await at(round, cookie).post('/auth/logout', {})
        t.strictSame(await openRows(sue.userId), [], 'a sign-out ends all of it')
      }
    })
  }
}

/** Asserts that the impersonations of an actor are of the present generation of the user who is shown. */
async function assertGeneration (t: Test, { query }: TestDatabase, actor: string, generation: unknown): Promise<void> {
  const rows = await query(`select proofs from svc_auth_sessions where ended_at is null and user_id = '${actor}'`)
  const shown = rows.map(({ proofs }) => typeof proofs === 'string' ? JSON.parse(proofs) : proofs)
  t.strictSame(shown.map(({ acting }) => acting?.generation), [generation])
}
