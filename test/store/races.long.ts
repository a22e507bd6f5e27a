import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { localProvider } from '../helpers/app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { HALF_MADE, type TestDatabase, postgresDatabase, sqliteDatabase } from './database.js'
import { type Move, type Outcome, type Racer, startRacer } from './race-process.js'

t.setTimeout(300_000)

t.test('races on Postgres leave whole accounts', async t => testRaces(t, postgresDatabase(await emptyDatabase(t))))
t.test('races on an SQLite file leave whole accounts', async t => testRaces(t, sqliteDatabase(t)))

/** What must come out of simultaneous calls, whichever of them is first: on two processes and on two stores of this one. */
async function testRaces (t: Test, database: TestDatabase): Promise<void> {
  const store = new SqlAuthStore(database.target)
  t.teardown(() => store.close())
  await store.findUser({ email: 'nobody@example.com' }) // The tables are there when the first race begins.
  const race = raceOf(await racersOn(t, database.target))

  const test = (name: string, run: (t: Test) => Promise<void>) => t.test(name, async t => {
    for (const table of ['svc_auth_provider_links', 'svc_auth_credentials', 'svc_auth_users']) await database.query(`delete from ${table}`)
    await run(t)
    t.strictSame(await database.query(HALF_MADE), [], 'nothing is half-made')
  })

  for (const emailVerified of [true, false]) {
    test(`200 first sign-ins of one identity make one user with one link; the e-mail is ${emailVerified ? 'verified' : 'not verified'}`, async t => {
      const signIns = Array.from({ length: 200 }, () => signIn('dev', 'ada-1', { email: 'ada@example.com', emailVerified }))

      const outcomes = await race(signIns)

      const [user, ...others] = await database.query('select user_id, email from svc_auth_users')
      t.match(user, { email: emailVerified ? 'ada@example.com' : null })
      t.strictSame(others, [])
      t.strictSame(
        await database.query('select provider, subject, user_id from svc_auth_provider_links'),
        [{ provider: 'dev', subject: 'ada-1', user_id: user?.user_id }]
      )
      t.strictSame(outcomes, signIns.map(() => ({ userId: user?.user_id })))
    })
  }

  test('200 registrations of one e-mail make one account, and 199 are told that it exists', async t => {
    const registrations = Array.from(
      { length: 200 },
      (_, index): Move => ({ does: 'register', email: 'ada@example.com', password: `the password of ${index}` })
    )

    const outcomes = await race(registrations)

    const winner = outcomes.findIndex(outcome => 'userId' in outcome)
    const credential = await store.findCredential('ada@example.com')
    t.strictSame(outcomes, registrations.map((_, index) => index === winner ? { userId: credential?.user.userId } : { error: 'exists' }))
    t.hasStrict(await localProvider().verifyPassword(credential?.passwordHash ?? null, `the password of ${winner}`), { matches: true })
    t.strictSame(await database.query('select user_id, email from svc_auth_users'), [{ user_id: credential?.user.userId, email: 'ada@example.com' }])
    t.strictSame(await database.query('select provider, subject from svc_auth_provider_links'), [{ provider: 'local', subject: 'ada@example.com' }])
    t.equal((await database.query('select user_id from svc_auth_credentials')).length, 1)
  })

  test('1000 sign-outs from everywhere are counted exactly', async t => {
    const [user] = await race([signIn('dev', 'ada-1')])
    const userId = userIdOf(user)

    // Ten turns: SQLite syncs each to the disk, and a store waits five seconds.
    for (let turn = 0; turn < 10; turn++) {
      const signOuts = Array.from({ length: 100 }, (): Move => ({ does: 'sign out everywhere', userId }))
      t.strictSame(await race(signOuts), signOuts.map(() => ({ userId })))
    }

    t.hasStrict(await store.status(userId), { generation: 1000 })
    t.strictSame(await database.query("select extras from svc_auth_users where cast(extras as text) like '%1000.0%'"), [])
  })

  test('of 100 attempts at factors at once ten are let pass, and the user is told once', async t => {
    const [user] = await race([signIn('dev', 'ada-1')])
    const attempts = Array.from({ length: 100 }, (): Move => ({ does: 'attempt a factor', userId: userIdOf(user) }))

    const outcomes = await race(attempts)

    const counts = new Map<string, number>()
    for (const outcome of outcomes) {
      const what = 'error' in outcome ? outcome.error : 'let pass'
      counts.set(what, (counts.get(what) ?? 0) + 1)
    }
    t.strictSame(counts, new Map([['let pass', 10], ['told', 1], ['refused', 89]]))
  })

  test('a code is spent once by 100 requests, and a factor is of one of 100 users', async t => {
    const users = await race(Array.from({ length: 100 }, (_, index) => signIn('dev', `subject-${index}`)))
    const added = users.map((user): Move => ({ does: 'add a factor', userId: userIdOf(user), id: 'shared' }))

    const outcomes = await race(added)

    const winner = outcomes.findIndex(outcome => 'userId' in outcome)
    t.strictSame(outcomes, users.map((user, index) => index === winner ? user : { error: 'exists' }))
    const codes = Array.from({ length: 100 }, (): Move => ({ does: 'spend a code', userId: userIdOf(users[winner]) }))
    const spent = await race(codes)
    t.equal(spent.filter(outcome => 'userId' in outcome).length, 1)
    t.equal(spent.filter(outcome => 'error' in outcome && outcome.error === 'spent').length, 99)
    const rows = await database.query('select factor_id, counter from svc_auth_factors')
    t.strictSame(rows.map(row => ({ ...row, counter: Number(row.counter) })), [{ factor_id: 'shared', counter: 1 }])
  })

  test('two identities with one verified e-mail make one user with two links', async t => {
    for (let round = 0; round < 30; round++) {
      const email = `round-${round}@example.com`

      const outcomes = await race([signIn('one', `subject-${round}`, { email }), signIn('two', `subject-${round}`, { email })])

      const user = await store.findUser({ email })
      t.strictSame(outcomes, [{ userId: user?.userId }, { userId: user?.userId }])
      t.strictSame(
        (await store.links(String(user?.userId))).map(({ provider, subject }) => `${subject} at ${provider}`),
        [`subject-${round} at one`, `subject-${round} at two`]
      )
    }
    t.equal((await database.query('select user_id from svc_auth_users')).length, 30)
  })

  test('of two users whose providers report one verified e-mail one gets it, and both are signed in', async t => {
    for (let round = 0; round < 30; round++) {
      const email = `round-${round}@example.com`
      const subjects = [`ada-${round}`, `bob-${round}`]
      const users = await race(subjects.map(subject => signIn('dev', subject)))

      const outcomes = await race(subjects.map(subject => signIn('dev', subject, { email })))

      t.strictSame(outcomes, users)
      const emails = await Promise.all(users.map(async user => (await store.findUser({ userId: userIdOf(user) }))?.email))
      t.strictSame(new Set(emails), new Set([email, null]))
    }
  })

  test('of 500 grants of different claims none is lost', async t => {
    const [ada] = await race([signIn('dev', 'ada-1')])
    const claims = Array.from({ length: 500 }, (_, index) => ({ [`claim-${index}`]: index }))

    const outcomes = await race(claims.map(claims => ({ does: 'grant', userId: userIdOf(ada), claims })))

    t.strictSame(outcomes, claims.map(() => ada))
    t.strictSame((await store.findUser({ userId: userIdOf(ada) }))?.claims, Object.assign({}, ...claims))
  })

  test('grants and sign-ins of one user lose nothing, and what is noted is all of one sign-in', async t => {
    const [ada] = await race([signIn('dev', 'ada-1', { email: 'ada@example.com' })])
    const claims = Array.from({ length: 100 }, (_, index) => ({ [`claim-${index}`]: index }))
    const moves = claims.flatMap((claims, index): Move[] => [
      { does: 'grant', userId: userIdOf(ada), claims },
      signIn('dev', 'ada-1', { email: `ada-${index}@example.com`, name: `Ada the ${index}th` })
    ])

    const outcomes = await race(moves)

    t.strictSame(outcomes, moves.map(() => ada))
    const user = await store.findUser({ userId: userIdOf(ada) })
    const [link, ...others] = await store.links(userIdOf(ada))
    const last = claims.findIndex((_, index) => link?.claims.name === `Ada the ${index}th`)
    t.strictSame(others, [])
    t.strictSame(link?.claims, { sub: 'ada-1', email: `ada-${last}@example.com`, name: `Ada the ${last}th` })
    t.hasStrict(user, {
      userId: userIdOf(ada),
      email: `ada-${last}@example.com`,
      emailVerified: true,
      name: `Ada the ${last}th`,
      claims: Object.assign({}, ...claims),
      // A race ends before a session is written, which would admit the user.
      isNew: true
    })
  })

  test('a user who is deleted during a sign-in is gone or new, and whole', async t => {
    for (let round = 0; round < 50; round++) {
      const email = `round-${round}@example.com`
      const [old] = await race([signIn('dev', `subject-${round}`, { email })])
      const provider = round % 2 === 0 ? 'dev' : 'other' // The second finds him by his e-mail.
      const moves: Move[] = [{ does: 'delete', userId: userIdOf(old) }, signIn(provider, `subject-${round}`, { email })]

      const [deleted, signedIn] = await race(moves)

      t.strictSame(deleted, old)
      const user = await store.findUser({ email })
      if (user === null) {
        t.strictSame(signedIn, old, 'the sign-in was first')
      } else {
        t.strictSame(signedIn, { userId: user.userId }, 'the sign-in made a new user')
        t.not(user.userId, userIdOf(old))
        t.strictSame((await store.links(user.userId)).map(({ provider, subject }) => ({ provider, subject })), [{ provider, subject: `subject-${round}` }])
      }
      t.strictSame(await store.links(userIdOf(old)), [])
    }
  })
}

/** Two processes, and two stores in this one. */
async function racersOn (t: Test, target: string): Promise<Racer[]> {
  const racers = await Promise.all([forkRacer(target), forkRacer(target), startRacer(target), startRacer(target)])
  for (const racer of racers) t.teardown(() => racer.end())
  return racers
}

async function forkRacer (target: string): Promise<Racer> {
  const child = fork(fileURLToPath(new URL('race-process.ts', import.meta.url)), [target], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  const message = async (): Promise<unknown> => {
    const [message]: unknown[] = await Promise.race([
      once(child, 'message'),
      exited.then(([code]) => { throw new Error(`the process of a racer ended with ${code}`) })
    ])
    return message
  }
  await message()
  return {
    async run (moves) {
      const outcomes = message()
      child.send(moves)
      return await outcomes as Outcome[]
    },
    async end () {
      if (child.connected) child.disconnect()
      await exited
    }
  }
}

/** Deals moves out, each time beginning with the next racer, and lets all run at once; the outcomes are in the order of the moves. */
function raceOf (racers: Racer[]): (moves: Move[]) => Promise<Outcome[]> {
  let first = 0
  return async moves => {
    const racerOf = (index: number) => (first + index) % racers.length
    const dealt = racers.map((_, racer) => moves.filter((_, index) => racerOf(index) === racer))
    const outcomes = await Promise.all(racers.map(async (racer, number) => racer.run(dealt[number] ?? [])))
    const inOrder = moves.map((_, index) => outcomes[racerOf(index)]?.shift() ?? { error: 'no outcome' })
    first++
    return inOrder
  }
}

function signIn (
  provider: string,
  subject: string,
  { email, name, emailVerified = email !== undefined }: { email?: string, name?: string, emailVerified?: boolean } = {}
): Move {
  return {
    does: 'sign in',
    provider,
    identity: { subject, claims: { sub: subject, ...(email !== undefined && { email }), ...(name !== undefined && { name }) }, emailVerified }
  }
}

function userIdOf (outcome: Outcome | undefined): string {
  return outcome !== undefined && 'userId' in outcome ? outcome.userId : `no user: ${outcome?.error}`
}
