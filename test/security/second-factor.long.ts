/** Attacks 88, 90, 91 and 101 with two processes of an application, which share a database and limit no client. */
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { type Mailbox, mailbox, totp } from '../../lib/testing.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { type Answer, Visitor } from '../helpers/visitor.js'
import { type TestDatabase, postgresDatabase, sqliteDatabase } from '../store/database.js'
import { forkMailProcess } from './mails-process.js'

t.setTimeout(600_000)

const ROUNDS = 10
const PASSWORD = 'correct horse'
const FINISH = '/auth/local/second-factor'

interface Processes {
  store: SqlAuthStore
  mails: Mailbox
  /** A browser at one of the processes. */
  at: (index: number) => Visitor
}

async function startProcesses (t: Test, target: string): Promise<Processes> {
  const mails = mailbox()
  const options = { target, sendMail: mails.sendMail, hasFactors: true }
  const origins = await Promise.all([forkMailProcess(t, options), forkMailProcess(t, options)])
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  return { store, mails, at: index => new Visitor(origins[index % 2] ?? '') }
}

/** A user with a confirmed address who has set up an app. */
async function enrolAt ({ at, mails }: Processes, email: string): Promise<{ secret: string, recoveryCodes: string[] }> {
  const browser = at(0)
  await browser.post('/auth/local/register', { email, password: PASSWORD })
  const { token } = await mails.next('verify-email')
  const { keep } = Object((await browser.post('/auth/local/verify-email', { token })).body)
  await browser.post('/auth/local/verify-email', { token, existing: keep })
  const { secret } = Object((await browser.post('/auth/local/totp/enroll', {})).body)
  const confirmed = await browser.post('/auth/local/totp/confirm', { code: totp(secret) })
  if (confirmed.status !== 200) throw new Error(`the enrolment answered ${confirmed.status}`)
  return { secret, recoveryCodes: Object(confirmed.body).recoveryCodes }
}

/** Browsers, half of them at each process, in which the user has typed the password. */
async function waiting ({ at }: Processes, email: string, count: number): Promise<Visitor[]> {
  return Promise.all(Array.from({ length: count }, async (_, index) => {
    const browser = at(index)
    const { status, body } = await browser.post('/auth/local/login', { email, password: PASSWORD })
    if (body.code !== 'second_factor_required') throw new Error(`the login answered ${status} ${body.code}`)
    return browser
  }))
}

function counted (answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, body: { code = status } } of answers) counts[code] = (counts[code] ?? 0) + 1
  return counts
}

function wrong (secret: string): string {
  return String((Number(totp(secret, { step: 40 })) + 500_000) % 1_000_000).padStart(6, '0')
}

for (const [kind, create] of Object.entries({
  'an SQLite file': async (t: Test): Promise<TestDatabase> => sqliteDatabase(t),
  Postgres: async (t: Test): Promise<TestDatabase> => postgresDatabase(await emptyDatabase(t))
})) {
  t.test(`codes at two processes on ${kind}`, async t => {
    const processes = await startProcesses(t, (await create(t)).target)

    t.test('attack 88: of ten requests with one code at once, one signs in', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const email = `totp-${round}@example.com`
        const { secret } = await enrolAt(processes, email)
        const browsers = await waiting(processes, email, 10)
        const code = totp(secret, { step: 1 })

        const answers = await Promise.all(browsers.map(async browser => browser.post(FINISH, { code })))

        t.strictSame(counted(answers), { 200: 1, invalid_code: 9 }, `round ${round}`)
      }
    })

    t.test('attack 91: of ten requests with one recovery code at once, one signs in', async t => {
      for (let round = 0; round < ROUNDS; round++) {
        const email = `recovery-${round}@example.com`
        const { recoveryCodes: [code] } = await enrolAt(processes, email)
        const browsers = await waiting(processes, email, 10)

        const answers = await Promise.all(browsers.map(async browser => browser.post(FINISH, { code })))

        t.strictSame(counted(answers), { 200: 1, invalid_code: 9 }, `round ${round}`)
        t.equal(Object(answers.find(({ status }) => status === 200)?.body).recoveryCodesLeft, 9)
      }
    })

    t.test('attack 90, attack 101: ten codes are checked in all, with a new sign-in each time and a success in between', async t => {
      const { mails, store } = processes
      const email = 'guessed@example.com'
      const { secret, recoveryCodes: [first = '', second = ''] } = await enrolAt(processes, email)
      const guess = async (count: number): Promise<Answer[]> => {
        const browsers = await waiting(processes, email, count)
        return Promise.all(browsers.map(async browser => browser.post(FINISH, { code: wrong(secret) })))
      }

      t.strictSame(counted(await guess(4)), { invalid_code: 4 })
      const [owner] = await waiting(processes, email, 1)
      t.equal((await owner?.post(FINISH, { code: first }))?.status, 200)
      t.strictSame(counted(await guess(40)), { invalid_code: 5, rate_limited: 35 })

      for (const browser of await waiting(processes, email, 2)) {
        t.equal((await browser.post(FINISH, { code: second })).body.code, 'rate_limited', 'the right code')
      }
      await mails.next('too-many-codes')
      t.equal((await guess(10)).every(({ body }) => body.code === 'rate_limited'), true)
      t.equal(mails.all.filter(({ kind }) => kind === 'too-many-codes').length, 1)
      t.equal((await store.findUser({ email }))?.factors?.join(), 'recovery,totp')
    })
  })
}
