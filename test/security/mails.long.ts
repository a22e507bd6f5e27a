/** Attacks 66, 67, 72, 73, 74 and 76 with two processes of an application, which share a database. */
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { type Mailbox, mailbox } from '../../lib/testing.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type Answer, Visitor } from '../helpers/visitor.js'
import { HALF_MADE, type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'
import { forkMailProcess } from './mails-process.js'

t.setTimeout(600_000)

const ROUNDS = 20
const PASSWORD = 'correct horse'
const FORGOT = '/auth/local/forgot-password'
const RESET = '/auth/local/reset-password'
const VERIFY = '/auth/local/verify-email'
const CHANGE = '/auth/local/change-email'
const CONFIRM = '/auth/local/change-email/confirm'

/** Two processes on a database. */
interface Processes {
  store: SqlAuthStore
  mails: Mailbox
  /** A browser at one of the processes. */
  at: (index: number) => Visitor
}

async function startProcesses (t: Test, target: string, verify?: 'first'): Promise<Processes> {
  const mails = mailbox()
  const options = { target, sendMail: mails.sendMail, ...(verify !== undefined && { verify }) }
  const origins = await Promise.all([forkMailProcess(t, options), forkMailProcess(t, options)])
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  return { store, mails, at: index => new Visitor(origins[index % 2] ?? '') }
}

/** Registers a user at the first process: returns their browser and the token that confirms them. */
async function registerAt ({ at, mails }: Processes, email: string): Promise<{ browser: Visitor, userId: string, token: string }> {
  const browser = at(0)
  const { status, body } = await browser.post('/auth/local/register', { email, password: PASSWORD })
  if (status !== 201) throw new Error(`the registration answered ${status}`)
  return { browser, userId: String(body.userId), token: (await mails.next('verify-email')).token }
}

async function signedInAt ({ at }: Processes, index: number, email: string): Promise<Visitor> {
  const browser = at(index)
  const { status } = await browser.post('/auth/local/login', { email, password: PASSWORD })
  if (status !== 200) throw new Error(`the login answered ${status}`)
  return browser
}

async function resetTokenOf ({ at, mails }: Processes, email: string): Promise<string> {
  await at(0).post(FORGOT, { email })
  return (await mails.next('reset-password')).token
}

/** Sends ten requests at once, five to each process. */
async function ten (send: (index: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: 10 }, (_, index) => send(index)))
}

function codes (answers: readonly Answer[]): Array<string | number> {
  return answers.map(({ status, body: { code = status } }) => code).sort()
}

function testRaces (t: Test, processes: Processes): void {
  const { at, mails, store } = processes

  t.test('attack 66: of ten resets by one link at both processes, one sets its password', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const email = `reset-${round}@example.com`
      await registerAt(processes, email)
      const token = await resetTokenOf(processes, email)
      const passwordOf = (index: number): string => `the password number ${index}`

      const answers = await ten(async index => at(index).post(RESET, { token, password: passwordOf(index) }))

      t.strictSame(codes(answers), [204, ...Array<string>(9).fill('invalid_token')], `round ${round}`)
      const logins = await ten(async index => at(index).post('/auth/local/login', { email, password: passwordOf(index) }))
      t.strictSame(logins.map(({ status }) => status), answers.map(({ status }) => status === 204 ? 200 : 401))
      t.equal((await at(1).post(RESET, { token, password: PASSWORD })).body.code, 'invalid_token')
    }
  })

  t.test('attack 66: of ten confirmations by one link at both processes one succeeds, which is audited', async t => {
    const audited = async (): Promise<number> => {
      const counts = await Promise.all([at(0), at(1)].map(async visitor => visitor.get('/verifications')))
      return counts.reduce((sum, { body }) => sum + Number(Object(body).verifications), 0)
    }
    for (let round = 0; round < ROUNDS; round++) {
      const { userId, token } = await registerAt(processes, `verify-${round}@example.com`)
      const before = await audited()
      const fields = { token, password: PASSWORD }
      const { keep: existing } = Object((await at(0).post(VERIFY, fields)).body)
      // Other requests: the very same one is told that it is done.
      const redeem = async (index: number): Promise<Answer> => at(index).post(VERIFY, { ...fields, existing, next: `/${index}` })

      const statuses = codes(await ten(redeem)).filter(code => code === 204)
      t.equal(statuses.length, 1, `round ${round}`)
      t.equal(Object((await redeem(11)).body).code, 'invalid_token', 'again')

      t.equal(await audited() - before, 1)
      t.match(await store.findUser({ userId }), { emailVerified: true })
    }
  })

  t.test('attack 66: of ten confirmations of one new address at both processes, one changes it', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const { browser, userId } = await registerAt(processes, `change-${round}@example.com`)
      const email = `changed-${round}@example.com`
      await browser.post(CHANGE, { email })
      const { token } = await mails.next('change-email')

      const answers = await ten(async index => at(index).post(CONFIRM, { token, password: PASSWORD, next: `/${index}` }))

      t.strictSame(codes(answers), [204, ...Array<string>(9).fill('invalid_token')], `round ${round}`)
      t.match(await store.findUser({ userId }), { email, generation: 1 })
      t.match(await store.links(userId), [{ subject: email, claims: { email } }])
    }
  })

  t.test('attack 67: a link that was used at one process ends the others at the other one', async t => {
    const email = 'three-links@example.com'
    await registerAt(processes, email)
    const [first, second, third] = [await resetTokenOf(processes, email), await resetTokenOf(processes, email), await resetTokenOf(processes, email)]

    t.equal((await at(0).post(RESET, { token: second, password: PASSWORD })).status, 204)

    for (const token of [first, second, third]) {
      t.equal((await at(1).post(RESET, { token, password: 'another password' })).body.code, 'invalid_token')
    }
  })

  t.test('attack 67: of a reset and a change of the password at once, one succeeds and its password is the one', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const email = `overtaken-${round}@example.com`
      const { browser } = await registerAt(processes, email)
      const token = await resetTokenOf(processes, email)

      const [changed, reset] = await Promise.all([
        browser.post('/auth/local/change-password', { current: PASSWORD, password: 'the changed password' }),
        at(1).post(RESET, { token, password: 'the password of the reset' })
      ])

      t.equal([changed, reset].filter(({ status }) => status === 204).length, 1, `round ${round}: ${codes([changed, reset])}`)
      const password = reset.status === 204 ? 'the password of the reset' : 'the changed password'
      t.equal((await at(0).post('/auth/local/login', { email, password })).status, 200)
    }
  })

  t.test('attack 72: a squatter who links an identity while the owner recovers the address keeps none', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const email = `squatted-${round}@example.com`
      const { browser: squatter, userId } = await registerAt(processes, email)
      const token = await resetTokenOf(processes, email)
      const callback = await squatter.leaveToLink('mine', { subject: `squatter-${round}` })

      const [reset] = await Promise.all([at(1).post(RESET, { token, password: 'the password of the owner' }), squatter.get(callback)])

      t.equal(reset.status, 204, `round ${round}`)
      t.strictSame((await store.links(userId)).map(({ provider }) => provider), ['local'])
    }
  })

  t.test('attack 73: of two changes at once no address is taken that was not confirmed', async t => {
    const { userId } = await registerAt(processes, 'mallory@k.example')
    const victim = 'victim@example.com'
    let email = 'mallory@k.example'
    for (let round = 0; round < 5 * ROUNDS; round++) {
      const own = round % 2 === 0 ? 'mallory@k2.example' : 'mallory@k.example'
      const browsers = [await signedInAt(processes, 0, email), await signedInAt(processes, 1, email)]
      await Promise.all(browsers.map(async (browser, index) => browser.post(CHANGE, { email: [own, victim][(index + round) % 2] })))
      const sent = [await mails.next('change-email'), await mails.next('change-email')]
      const { token } = sent.find(({ to }) => to === own) ?? {}

      const confirmed = await Promise.all(browsers.map(async browser => browser.post(CONFIRM, { token, email: victim, to: victim })))

      t.strictSame(confirmed.map(({ status }) => status).sort(), [204, 401], `round ${round}`)
      const user = await store.findUser({ userId })
      t.equal(user?.email, own)
      t.strictSame((await store.links(userId)).map(({ subject, claims }) => [subject, claims.email]), [[own, own]])
      email = own
    }
    t.equal(await store.findUser({ email: victim }), null)
  })

  t.test('attack 74: of two users who confirm one free address at once, one gets it', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const emails = [`one-${round}@example.com`, `two-${round}@example.com`]
      const wanted = `wanted-${round}@example.com`
      const browsers = [await registerAt(processes, emails[0] ?? ''), await registerAt(processes, emails[1] ?? '')]
      const tokens: string[] = []
      for (const { browser } of browsers) {
        await browser.post(CHANGE, { email: wanted })
        tokens.push((await mails.next('change-email')).token)
      }

      const answers = await Promise.all(tokens.map(async (token, index) => at(index).post(CONFIRM, { token, password: PASSWORD })))

      t.strictSame(codes(answers), [204, 'exists'], `round ${round}`)
      for (const [index, { userId }] of browsers.entries()) {
        const email = answers[index]?.status === 204 ? wanted : emails[index]
        t.match(await store.findUser({ userId }), { email })
        t.match(await store.links(userId), [{ provider: 'local', subject: email, claims: { email } }])
      }
    }
  })

  t.test('attack 76: of two first passwords at once at both processes, one is set', async t => {
    for (let round = 0; round < ROUNDS; round++) {
      const email = `first-password-${round}@example.com`
      const browsers = [at(0), at(1)]
      for (const browser of browsers) await browser.get(await browser.leaveFor('mine', { subject: `first-password-${round}`, email }))
      const passwordOf = (index: number): string => `the first password of process ${index}`

      const answers = await Promise.all(browsers.map(async (browser, index) =>
        browser.post('/auth/local/set-password', { password: passwordOf(index) })))

      const winner = answers.findIndex(({ status }) => status === 204)
      t.equal(answers.filter(({ status }) => status === 204).length, 1, `round ${round}: ${codes(answers)}`)
      t.equal((await at(round).post('/auth/local/login', { email, password: passwordOf(winner) })).status, 200)
    }
  })
}

for (const [kind, create] of Object.entries({
  'an SQLite file': async (t: Test): Promise<TestDatabase> => sqliteDatabase(t),
  Postgres: async (t: Test): Promise<TestDatabase> => postgresDatabase(await emptyDatabase(t))
})) {
  t.test(`links in mails are redeemed at two processes on ${kind}`, async t => {
    const database = await create(t)

    await t.test('at once', async t => { testRaces(t, await startProcesses(t, database.target)) })

    t.strictSame(await database.query(HALF_MADE), [], 'nothing is half-made')
  })

  t.test(`attack 66: of ten registrations by one link at two processes on ${kind}, one creates the user`, async t => {
    const { target } = await create(t)
    const { at, mails, store } = await startProcesses(t, target, 'first')
    for (let round = 0; round < ROUNDS; round++) {
      const email = `register-${round}@example.com`
      await at(0).post('/auth/local/register', { email })
      const { token } = await mails.next('register')
      const passwordOf = (index: number): string => `the password number ${index}`

      const answers = await ten(async index => at(index).post('/auth/local/register', { token, password: passwordOf(index) }))

      const [created, ...refused] = codes(answers)
      t.equal(created, 201, `round ${round}`)
      t.ok(refused.every(code => code === 'exists' || code === 'invalid_token'), 'the address is taken, or the link was used')
      const winner = answers.findIndex(({ status }) => status === 201)
      t.match(await store.findUser({ email }), { userId: answers[winner]?.body.userId, emailVerified: true })
      t.equal((await at(1).post('/auth/local/login', { email, password: passwordOf(winner) })).status, 200, 'the password of the winner')
      t.equal((await at(0).post('/auth/local/register', { token, password: PASSWORD })).body.code, 'invalid_token', 'again')
    }
  })
}
