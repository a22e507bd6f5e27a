/** Attacks 3, 4 and 35 with two processes of an application, which share users and sessions. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { NEW, OLD, rollSecret } from '../helpers/rolling-secrets.js'
import { Visitor } from '../helpers/visitor.js'
import { SharedEntries, forkSessionProcess } from './session-processes.js'

t.setTimeout(300_000)

const ROUNDS = 30
const ADA = { email: 'ada@example.com', password: 'correct horse' }
const ADA_AT_MINE = { subject: 'ada-at-mine' }

async function usersFile (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-auth-sessions-'))
  t.teardown(async () => rm(folder, { recursive: true, force: true }))
  return join(folder, 'users.db')
}

t.test('two processes of an application share sessions', async t => {
  const shared = new SharedEntries()
  const users = await usersFile(t)
  const fork = async () => forkSessionProcess(t, shared, users, [OLD])
  const [one, other] = await Promise.all([fork(), fork()])
  const atOne = (cookie?: string) => new Visitor(one.origin, cookie)
  const atOther = (cookie?: string) => new Visitor(other.origin, cookie)
  await atOne().post('/auth/local/register', ADA)
  const signedIn = async (): Promise<Visitor> => {
    const visitor = atOne()
    if ((await visitor.post('/auth/local/login', ADA)).status !== 200) throw new Error('the login failed')
    return visitor
  }
  /** Whether a guard lets a cookie pass, at both processes. */
  const pass = async (cookie: string): Promise<boolean> => {
    const answers = await Promise.all([atOne(cookie), atOther(cookie)].map(async visitor => visitor.get('/private')))
    return answers.every(({ status }) => status === 200)
  }

  t.test('attack 3: one callback at both processes at once signs the user in, once', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const visitor = atOne()
      const callback = await visitor.leaveFor('mine', ADA_AT_MINE)
      const tabs = [atOne(visitor.cookie), atOther(visitor.cookie)]

      const answers = await Promise.all(tabs.map(async tab => tab.get(callback)))

      const good = tabs.filter((_, index) => answers[index]?.status === 302)
      // The same callback is answered again: its session takes the place of the first one.
      const passing = await Promise.all(good.map(async ({ cookie }) => pass(cookie)))
      t.equal(passing.filter(passes => passes).length, 1, `round ${round}: ${answers.map(({ status }) => status)}`)
    }
  })

  t.test('attack 35: a sign-out beside a sign-in of the same session leaves the user signed in with neither cookie', async t => {
    let left = 0
    for (let round = 0; round < ROUNDS; round++) {
      const visitor = await signedIn()
      const before = visitor.cookie
      const signingIn = atOther(before)

      const read = once(shared, 'get')
      const login = signingIn.post('/auth/local/login', ADA)
      // A login that came after the sign-out would be one of a browser without a session.
      await read
      const signOut = await atOne(before).post('/auth/logout', {})
      await login

      t.equal(signOut.status, 204)
      t.notOk(await pass(before), `round ${round}: the old cookie`)
      if (await pass(signingIn.cookie)) left++
    }
    // Where the processes share two cores, a sign-out may come after the sign-in was over.
    t.ok(left <= ROUNDS / 10, `${left} of ${ROUNDS} users were left signed in`)
  })

  t.test('attack 35: a sign-out that reaches another process while a sign-in is under way ends its session', async t => {
    let [together, left] = [0, 0]
    while (together < ROUNDS) {
      const before = (await signedIn()).cookie
      const signingIn = atOther(before)
      let isAnswered = false
      const read = once(shared, 'get')
      const login = signingIn.post('/auth/local/login', ADA).finally(() => { isAnswered = true })
      await read
      await wait(Math.random() * 40)
      if (!isAnswered) {
        together++
        await atOne(before).post('/auth/logout', {})
        await login
        if (signingIn.cookie !== before && await pass(signingIn.cookie)) left++
      }
      await login
    }
    // The answer of the sign-in may have been on its way.
    t.ok(left <= ROUNDS / 5, `${left} of ${ROUNDS} users were left signed in`)
  })

  t.test('attack 35: two sign-outs at both processes at once are announced', async t => {
    let single = 0
    for (let round = 0; round < ROUNDS; round++) {
      const { cookie } = await signedIn()
      shared.revoked.length = 0

      const answers = await Promise.all([atOne(cookie), atOther(cookie)].map(async tab => tab.post('/auth/logout', {})))

      t.strictSame(answers.map(({ status }) => status), [204, 204])
      // A process announces before it answers, and its messages arrive in order: this one came later.
      await Promise.all([atOne(cookie), atOther(cookie)].map(async tab => tab.userId()))
      t.ok(shared.revoked.length >= 1, `round ${round}`)
      if (shared.revoked.length === 1) single++
      t.notOk(await pass(cookie))
    }
    t.ok(single >= ROUNDS * 0.8, `${single} of ${ROUNDS} were announced once`)
  })

  t.test('attack 4: two tabs that start at one moment at both processes both finish', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const visitor = atOne()
      await visitor.leaveFor('mine', ADA_AT_MINE)
      const tabs = [atOne(visitor.cookie), atOther(visitor.cookie)]
      const callbacks = await Promise.all(tabs.map(async tab => tab.leaveFor('mine', ADA_AT_MINE)))

      let { cookie } = visitor
      for (const [index, callback] of callbacks.entries()) {
        const tab = new Visitor([other, one][index]?.origin ?? '', cookie)
        const { status, location } = await tab.get(callback)
        t.strictSame([status, location], [302, '/#'], `round ${round}: tab ${index}`)
        cookie = tab.cookie
      }
      t.ok(await pass(cookie))
    }
  })
})

t.test('a secret that changes in two rounds of restarts signs no user out at any point', async t => {
  const shared = new SharedEntries()
  const users = await usersFile(t)
  const fork = async (...secrets: string[]) => forkSessionProcess(t, shared, users, secrets)

  const { processes, login } = await rollSecret(t, fork)

  const visitor = new Visitor(processes[0]?.origin ?? '')
  await visitor.post('/auth/local/login', login)
  for (const index of processes.keys()) {
    await processes[index]?.end()
    processes[index] = await fork(NEW)
    t.equal((await new Visitor(processes[index].origin, visitor.cookie).get('/private')).status, 200, 'without the old secret')
  }
})
