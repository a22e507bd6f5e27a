/** Attacks 3, 4, 35 and 133: processes of an application that share nothing but a database. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { emptyDatabase } from '../helpers/postgres.js'
import { rollSecret } from '../helpers/rolling-secrets.js'
import { Visitor } from '../helpers/visitor.js'
import { SessionProcess } from './session-process.js'

t.setTimeout(600_000)

const ROUNDS = 30
const ADA = { email: 'ada@example.com', password: 'correct horse' }
const ADA_AT_MINE = { subject: 'ada-at-mine' }

const DATABASES: Record<string, (t: Test) => Promise<string>> = {
  Postgres: emptyDatabase,
  'an SQLite file': async t => join(t.testdir(), 'sessions.db')
}

for (const [name, database] of Object.entries(DATABASES)) {
  t.test(`three processes share the sessions in ${name}`, async t => {
    const target = await database(t)
    const start = async () => SessionProcess.start(t, { target })
    const processes = [await start(), await start(), await start()] as const
    const [one, other, third] = processes
    const at = ({ origin }: SessionProcess, cookie?: string): Visitor => new Visitor(origin, cookie)
    await at(one).post('/auth/local/register', ADA)

    const signedIn = async (): Promise<Visitor> => {
      const visitor = at(one)
      if ((await visitor.post('/auth/local/login', ADA)).status !== 200) throw new Error('the login failed')
      return visitor
    }
    /** How many processes have a guard that lets a cookie pass. */
    const passesAt = async (cookie: string): Promise<number> => {
      const answers = await Promise.all(processes.map(async process => at(process, cookie).get('/private')))
      return answers.filter(({ status }) => status === 200).length
    }

    t.test('a user starts at the first, comes back to the second and goes on at the third', async t => {
      const visitor = at(one)
      const callback = await visitor.leaveFor('mine', ADA_AT_MINE)
      const back = at(other, visitor.cookie)

      const { status, location } = await back.get(callback)

      t.strictSame([status, location], [302, '/#'])
      t.not(back.cookie, visitor.cookie)
      await at(third, back.cookie).post('/cart', { cart: 'apples' })
      t.match(await at(one, back.cookie).get('/cart'), { body: { cart: 'apples' } })
      t.equal(await passesAt(back.cookie), 3)
      t.equal(await passesAt(visitor.cookie), 0)
    })

    t.test('attack 4: two tabs that start at one moment at two processes both finish', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const visitor = at(third)
        if (round % 2 === 0) await visitor.leaveFor('mine', ADA_AT_MINE)
        else await visitor.post('/cart', { cart: 'apples' })
        const tabs = [at(one, visitor.cookie), at(other, visitor.cookie)]
        const callbacks = await Promise.all(tabs.map(async tab => tab.leaveFor('mine', ADA_AT_MINE)))

        let { cookie } = visitor
        for (const [index, callback] of callbacks.entries()) {
          const tab = new Visitor([other, one][index]?.origin ?? '', cookie)
          const { status, location } = await tab.get(callback)
          t.strictSame([status, location], [302, '/#'], `round ${round}: tab ${index}`)
          cookie = tab.cookie
        }
        t.equal(await passesAt(cookie), 3)
      }
    })

    t.test('attack 4: of two tabs that come back at one moment to two processes one finishes at least, and each that does is signed in', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const visitor = at(third)
        const callbacks = [await visitor.leaveFor('mine', ADA_AT_MINE), await visitor.leaveFor('mine', ADA_AT_MINE)]
        const tabs = [at(one, visitor.cookie), at(other, visitor.cookie)]

        const answers = await Promise.all(tabs.map(async (tab, index) => tab.get(callbacks[index] ?? '')))

        const finished = tabs.filter((_, index) => answers[index]?.status === 302)
        t.ok(finished.length >= 1, `round ${round}`)
        for (const { cookie } of finished) t.equal(await passesAt(cookie), 3)
      }
    })

    t.test('attack 3: one callback at two processes at once leaves one session, by one token request', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const visitor = at(third)
        const callback = await visitor.leaveFor('mine', ADA_AT_MINE)
        const tabs = [at(one, visitor.cookie), at(other, visitor.cookie)]

        const answers = await Promise.all(tabs.map(async tab => tab.get(callback)))

        const outcomes = answers.map(({ status, body }) => body.code ?? status)
        t.ok(outcomes.includes(302) && outcomes.every(outcome => [302, 'invalid_state'].includes(outcome)), `round ${round}: ${outcomes}`)
        const state = new URL(callback, one.origin).searchParams.get('state')
        const redeemed = [...one.redeemed, ...other.redeemed].filter(redeemed => redeemed === state)
        t.equal(redeemed.length, 1, 'one token request')
        // The session of an answer that was sent again takes the place of the first one.
        const passing = await Promise.all(tabs.filter((_, index) => outcomes[index] === 302).map(async ({ cookie }) => passesAt(cookie)))
        t.strictSame(passing.filter(count => count > 0), [3])
      }
    })

    t.test('attack 35: a user who signs out beside a slow write of the application stays signed out', async t => {
      for (let round = 0; round < 10; round++) {
        const visitor = await signedIn()
        const { cookie } = visitor
        const before = other.held
        const held = at(other, cookie).get('/held')
        await other.tells(() => other.held > before)

        t.equal((await visitor.post('/auth/logout', {})).status, 204)
        other.letGo()

        t.equal((await held).status, 200)
        t.equal(await passesAt(cookie), 0, `round ${round}`)
        t.match(await at(third, cookie).get('/cart'), { body: { cart: null } })
      }
    })

    t.test('attack 35: a sign-out beside a sign-in of the same session leaves the user signed in with neither cookie', async t => {
      let signOuts = 0
      for (let round = 0; round < ROUNDS; round++) {
        const { cookie } = await signedIn()
        const [signingOut, signingIn] = [at(one, cookie), at(other, cookie)]
        const callback = await at(third, cookie).leaveFor('mine', ADA_AT_MINE)

        const [signOut, signIn] = await Promise.all([
          signingOut.post('/auth/logout', {}),
          round % 2 === 0 ? signingIn.get(callback) : signingIn.post('/auth/local/login', ADA)
        ])

        t.equal(signOut.status, 204)
        t.equal(await passesAt(cookie), 0, `round ${round}: the old cookie`)
        // A sign-out that came after the sign-in finds no session, and takes no cookie.
        if (signingOut.cookie === cookie) continue
        signOuts++
        // A login that came after the sign-out is one of a browser without a session.
        if (signingIn.cookie === cookie || round % 2 === 0) t.equal(await passesAt(signingIn.cookie), 0, `round ${round}: ${signIn.status}`)
      }
      t.ok(signOuts > ROUNDS / 2, `${signOuts} of ${ROUNDS} sign-outs found the session`)
    })

    t.test('attack 133: a sign-out beside the callback of a visitor at another process leaves the browser signed out', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const visitor = at(third)
        const callback = await visitor.leaveFor('mine', { subject: 'held' })
        const { cookie } = visitor
        const back = at(other, cookie)
        const before = other.held
        const landing = back.get(callback)
        await other.tells(() => other.held > before)

        // The sign-in is under way: it ends before the sign-out, beside it, or after it.
        const signOut = at(one, cookie).post('/auth/logout', {})
        if (round % 2 === 0) await signOut
        other.letGo()
        const [{ status }, { status: landed, body }] = await Promise.all([signOut, landing])

        t.equal(status, 204)
        t.equal(await passesAt(cookie), 0, `round ${round}: the old cookie`)
        if (round % 2 === 0) t.equal(body.code, 'invalid_state', `round ${round}`)
        else t.ok([302, 400].includes(landed), `round ${round}: ${landed}`)
        if (landed === 400) t.equal(await passesAt(back.cookie), 0)
      }
    })

    t.test('attack 35: of sign-outs at two processes at once, one is announced', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const visitor = await signedIn()
        const { cookie } = visitor
        const userId = await visitor.userId() ?? ''
        for (const { revoked } of processes) revoked.length = 0

        const answers = await Promise.all([at(one, cookie), at(other, cookie)].map(async tab => tab.post('/auth/logout', {})))

        t.strictSame(answers.map(({ status }) => status), [204, 204])
        if (name === 'Postgres') {
          await Promise.all(processes.map(async process => process.tells(() => process.revoked.length > 0)))
          t.strictSame(processes.map(({ revoked }) => revoked), [[userId], [userId], [userId]], `round ${round}`)
        } else {
          // A process announces before it answers, and its messages arrive in order: this one came later.
          await Promise.all(processes.map(async process => at(process, cookie).userId()))
          t.strictSame(processes.flatMap(({ revoked }) => revoked), [userId], `round ${round}`)
        }
        t.equal(await passesAt(cookie), 0)
      }
    })
  })

  t.test(`a secret that changes in two rounds of restarts on ${name} signs no user out at any point`, async t => {
    const target = await database(t)
    await rollSecret(t, async (...secrets) => SessionProcess.start(t, { target, secrets }))
  })

  t.test(`twenty processes that begin at once on ${name}, which is empty, all work`, async t => {
    const target = await database(t)
    const processes = await Promise.all(Array.from({ length: 20 }, async () => SessionProcess.start(t, { target })))

    const visitors = await Promise.all(processes.map(async ({ origin }, index) => {
      const visitor = new Visitor(origin)
      const person = { subject: `user-${index}` }
      const { status } = index % 2 === 0
        ? await visitor.post('/auth/local/register', { ...ADA, email: `ada+${index}@example.com` })
        : await visitor.get(await visitor.leaveFor('mine', person))
      t.equal(status, index % 2 === 0 ? 201 : 302, `process ${index}`)
      return visitor
    }))

    for (const [index, { cookie }] of visitors.entries()) {
      const elsewhere = new Visitor(processes[(index + 7) % processes.length]?.origin ?? '', cookie)
      t.equal((await elsewhere.get('/private')).status, 200, `user ${index} at another process`)
    }
  })
}
