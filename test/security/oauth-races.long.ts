import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LIFETIMES, presentedToken, refreshed } from '../../lib/features/oauth-server/grant.js'
import { Grants } from '../../lib/features/oauth-server/grants.js'
import { SqlAuthStore } from '../../lib/index.js'
import type { Browser } from '../helpers/browser.js'
import { ADA, Client, HTML, type Tokens, fieldsIn, send, signedIn, startServer } from '../helpers/oauth-app.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'
import { type ServerProcess, type TokenAnswer, startServerProcess } from './oauth-process.js'

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const FIFTY = 50

t.setTimeout(300_000)

t.test('attack 179, attack 180: races for tokens on Postgres', async t => testRaces(t, postgresDatabase(await emptyDatabase(t))))
t.test('attack 179, attack 180: races for tokens on an SQLite file', async t => testRaces(t, sqliteDatabase(t)))

async function testRaces (t: Test, { target }: TestDatabase): Promise<void> {
  const store = new SqlAuthStore(target)
  const app = await startServer(t, { device: { clients: ['assistant'] } }, { store, rateLimit: false })
  const grants = new Grants(store.featureTables)
  const browser = await signedIn(app)
  const [stays, first] = await Promise.all([startServerProcess(t, target), startServerProcess(t, target)])
  let falls: ServerProcess = first
  const userId = async (): Promise<string> => String((await app.auth.findUser({ email: ADA.email }))?.userId)

  const startAgain = async (): Promise<void> => { falls = await startServerProcess(t, target) }

  /** Sends a request fifty times at once, half to each process; one of them may be killed meanwhile. */
  const race = async (request: (server: ServerProcess, index: number) => Promise<TokenAnswer | null>, killAfter?: number) => {
    const answers = Promise.all(Array.from({ length: FIFTY }, async (_, index) => request(index % 2 === 0 ? stays : falls, index)))
    if (killAfter !== undefined) {
      await wait(killAfter)
      await falls.kill()
    }
    const given = await answers
    if (killAfter !== undefined) await startAgain()
    const odd = given.filter(answer => answer !== null && answer.status !== 200 && answer.body.error !== 'invalid_grant' &&
      answer.body.error !== 'expired_token' && answer.body.error !== 'slow_down')
    t.strictSame(odd, [])
    if (killAfter === undefined) t.notOk(given.includes(null), 'each is answered')
    return given.flatMap(answer => answer?.status === 200 ? [answer.body] : [])
  }

  /** How many of the refresh tokens that were ever answered are good now. */
  const living = async (tokens: readonly string[]): Promise<number> => {
    const [grantId = ''] = tokens.map(text => presentedToken(text)?.grantId)
    const found = await grants.find(grantId)
    return tokens.filter(text => {
      const token = presentedToken(text)
      return found !== null && token !== null &&
        typeof refreshed(found.grant, token, { lifetimes: LIFETIMES, now: Date.now() }) !== 'string'
    }).length
  }

  const newCode = async (client: Client, from: Browser): Promise<Record<string, string>> => ({
    grant_type: 'authorization_code',
    code: (await client.authorize(from)).get('code') ?? '',
    redirect_uri: client.redirectUri,
    code_verifier: client.verifier
  })

  for (const killAfter of [undefined, 3, 15]) {
    const when = killAfter === undefined ? '' : `, one process killed after ${killAfter} ms`

    await t.test(`of fifty that redeem one code, one gets tokens${when}`, async t => {
      const fields = await newCode(new Client(app), browser)
      const given = await race(async server => server.token(fields), killAfter)
      if (killAfter === undefined) t.equal(given.length, 1)
      t.ok(given.length <= 1)
      t.equal((await stays.token(fields))?.body.error, 'invalid_grant')
      for (const { refresh_token: token } of given) {
        t.equal((await stays.refresh(token))?.body.error, 'invalid_grant', 'one of the two with the verifier is a thief')
      }
    })

    await t.test(`those who have a code without its verifier end nothing${when}`, async t => {
      const fields = await newCode(new Client(app), browser)
      const stolen = { ...fields, code_verifier: 'v'.repeat(43) }
      const [given] = await race(async (server, index) => server.token(index === 0 ? fields : stolen), killAfter)
      for (let i = 0; i < 3; i++) t.equal((await stays.token(stolen))?.body.error, 'invalid_grant')
      if (given === undefined) return
      t.equal(await stays.ask(given.access_token), 200)
      t.equal((await stays.refresh(given.refresh_token))?.status, 200)
    })

    await t.test(`one refresh token has ten successors at most, which are good${when}`, async t => {
      const { refresh_token: token } = await new Client(app).connect(browser)
      const given = await race(async server => server.refresh(token), killAfter)
      if (killAfter === undefined) t.equal(given.length, 10)
      t.ok(given.length <= 10)
      const answered = given.map(({ refresh_token: next }) => next)
      t.equal(await living(answered), answered.length)
      t.ok(await living([token, ...answered]) <= 10)
      const [next = token] = answered
      t.equal((await stays.refresh(next))?.status, 200)
    })

    await t.test(`of fifty that have one device code, one gets tokens${when}`, async t => {
      const codes = (await send(app, '/auth/oauth/device', { client_id: 'assistant' })).json<Record<string, string>>()
      const page = await browser.submit('/auth/device', { user_code: codes.user_code ?? '', error_next: '/auth/device' })
      await browser.submit('/auth/device', { ...fieldsIn(page.body), decision: 'allow' }, HTML)
      const fields = { grant_type: DEVICE_CODE, device_code: codes.device_code ?? '' }
      const given = await race(async server => server.token(fields), killAfter)
      if (killAfter === undefined) t.equal(given.length, 1)
      t.ok(given.length <= 1)
      for (const { refresh_token: token } of given) t.equal((await stays.refresh(token))?.status, 200)
      t.not((await stays.token(fields))?.status, given.length === 1 ? 200 : 0)
    })
  }

  await t.test('no window is signed out by the others or by a process that is killed again and again', async t => {
    const { refresh_token: shared } = await new Client(app).connect(browser)
    const answered = [shared]
    const end = Date.now() + 5000
    let most = 0
    const failures: unknown[] = []
    /** A window refreshes with what it was answered last, at whichever process answers. */
    const run = async (first: string, window: number): Promise<number> => {
      let [token, count] = [first, 0]
      while (Date.now() < end && failures.length === 0) {
        const answer = await ((count + window) % 2 === 0 ? falls : stays).refresh(token) ?? await stays.refresh(token)
        if (answer?.status === 503) continue
        if (answer?.status !== 200) failures.push({ window, count, answer })
        else answered.push(token = answer.body.refresh_token)
        count++
        await wait(Math.random() * 20)
      }
      return count
    }
    // They share one at first: it is over once the first of them uses its own.
    const firsts = await Promise.all(Array.from({ length: 5 }, async () => stays.refresh(shared)))
    const tokens = firsts.flatMap(answer => answer?.status === 200 ? [answer.body.refresh_token] : [])
    t.equal(tokens.length, 5)
    answered.push(...tokens)
    const windows = tokens.map(run)
    while (Date.now() < end) {
      await wait(200 + Math.random() * 400)
      await falls.kill()
      await startAgain()
      most = Math.max(most, await living(answered))
    }
    const counts = await Promise.all(windows)
    t.strictSame(failures, [])
    t.ok(counts.every(count => count > 10), counts.join(' '))
    t.ok(most > 0 && most <= 10, `${most} are good`)
  })

  for (const [name, act] of Object.entries({
    'a block': async (id: string) => app.auth.block(id),
    'a sign-out everywhere': async (id: string) => app.auth.signOutEverywhere(id),
    'a new password': async (id: string) => app.auth.setPassword(id, 'another horse'),
    'a deletion': async (id: string) => app.auth.deleteUser(id)
  })) {
    await t.test(`${name} in one process ends tokens in the others at once`, async t => {
      const id = await userId()
      await app.auth.unblock(id)
      await app.auth.setPassword(id, ADA.password)
      const user = await signedIn(app)
      const { access_token: token, refresh_token: refresh } = await new Client(app).connect(user) satisfies Tokens
      const waiting = await newCode(new Client(app), user)
      const [one, other] = [stays, falls]
      t.strictSame([await one.ask(token), await other.ask(token)], [200, 200])

      await act(id)

      t.strictSame(await Promise.all([one.ask(token), other.ask(token)]), [401, 401])
      for (const server of [one, other]) t.equal((await server.refresh(refresh))?.body.error, 'invalid_grant')
      t.equal((await other.token(waiting))?.body.error, 'invalid_grant', 'also a code that nobody has redeemed')
    })
  }
}
