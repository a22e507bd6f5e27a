import t, { type Test } from 'tap'
import { RUNNING } from '../../lib/features/password/hashing.js'
import { type Answer, type AppUnderLoad, type Credentials, startAppUnderLoad } from './load-process.js'

const MIB = 2 ** 20

/** What may come on top of an idle application: 19 MiB for each hash that is computed, and what the requests need. */
const MOST_MEMORY = (RUNNING * 19 + 96) * MIB

const ADA = { email: 'ada@example.com', password: 'the right password' }

const SIGNED_IN = '200 local, with a session'
const INVALID = '401 invalid'
const BUSY = '503 busy, again in 3 s'

t.test('attack 42: each of 2,000 logins at once is answered, and other requests meanwhile', async t => {
  const { app, idle } = await start(t)
  const logins = Array.from({ length: 2000 }, (_, index) => index % 2 === 0 ? ADA : { ...ADA, password: `guess number ${index}` })

  const { answers, meanwhile } = await storm(app, logins)

  const outcomesOf = (isMeant: (login: Credentials) => boolean) => answers.filter((_, index) => isMeant(logins[index] ?? ADA)).map(outcome)
  const isRight = (login: Credentials) => login === ADA
  const compared = answers.filter(({ status }) => status !== 503).length

  t.test('attack 42: the right passwords sign in, or are turned away as busy', async t => {
    t.strictSame(new Set(outcomesOf(isRight)), new Set([SIGNED_IN, BUSY]))
  })
  t.test('attack 42: the wrong passwords are invalid, or turned away as busy', async t => {
    t.strictSame(new Set(outcomesOf(login => !isRight(login))), new Set([INVALID, BUSY]))
  })
  t.test('attack 58: a trivial route answers all the time, more often than passwords are compared', async t => {
    const duringStorm = meanwhile.filter(({ loginsBefore }) => loginsBefore > 0 && loginsBefore < logins.length)
    t.ok(meanwhile.every(({ status }) => status === 200))
    t.ok(duringStorm.length > compared, `${duringStorm.length} answers while ${compared} passwords were compared`)
  })
  t.test('attack 42: the memory stays bounded', async t => assertMemory(t, app, idle))
  t.test('attack 42: afterwards one can sign in as ever', async t => assertAlive(t, app))
})

t.test('attack 42: of 200 logins at any time none is turned away, and other requests are answered meanwhile', async t => {
  const { app, idle } = await start(t)
  const logins = Array.from({ length: 400 }, () => ADA)

  const { answers, meanwhile } = await storm(app, logins, 200)

  t.strictSame(new Set(answers.map(outcome)), new Set([SIGNED_IN]))
  t.ok(meanwhile.every(({ status }) => status === 200))
  t.ok(meanwhile.length > logins.length / 2, `${meanwhile.length} answers while ${logins.length} passwords were compared`)
  await assertMemory(t, app, idle, 2 * MOST_MEMORY)
})

t.test('attack 42: of 512 clients that try again at once each is answered, and the memory stays bounded', async t => {
  const { app, idle } = await start(t)

  const { answers, meanwhile } = await storm(app, Array.from({ length: 1500 }, () => ADA), 512)

  t.strictSame(new Set(answers.map(outcome)), new Set([SIGNED_IN, BUSY]))
  t.ok(meanwhile.every(({ status }) => status === 200))
  await assertMemory(t, app, idle, 2 * MOST_MEMORY)
  await assertAlive(t, app)
})

t.test('attack 42: passwords of 1,000,000 bytes cost nothing: they are invalid or busy, and are never compared', async t => {
  const { app } = await start(t)
  const usual = storm(app, Array.from({ length: 2000 }, () => ADA))
  const huge = await Promise.all(Array.from({ length: 20 }, async () => app.logIn({ ...ADA, password: 'x'.repeat(1_000_000) })))

  t.ok(huge.every(answer => [INVALID, BUSY].includes(outcome(answer))))
  t.ok((await usual).answers.some(answer => outcome(answer) === BUSY))
  await assertAlive(t, app)
})

/** An application that has had logins, and the memory that it has then. */
async function start (t: Test): Promise<{ app: AppUnderLoad, idle: number }> {
  const app = await startAppUnderLoad()
  t.teardown(() => app.end())
  await app.register(ADA)
  await Promise.all(Array.from({ length: RUNNING * 32 }, async () => app.logIn(ADA)))
  const { now: idle } = await app.memory()
  return { app, idle }
}

/** Logs in, all at once or so many at any time, and asks the trivial route again and again until the last login has its answer. */
async function storm (app: AppUnderLoad, logins: readonly Credentials[], atOnce = logins.length) {
  let loginsBefore = 0
  const meanwhile: Array<{ status: number | undefined, loginsBefore: number }> = []
  const answers: Answer[] = []
  const waiting = logins.entries()
  const done = Promise.all(Array.from({ length: atOnce }, async () => {
    for (const [index, login] of waiting) answers[index] = await app.logIn(login).finally(() => { loginsBefore++ })
  }))
  while (loginsBefore < logins.length) {
    const { status } = await app.askTrivial()
    meanwhile.push({ status, loginsBefore })
  }
  await done
  return { answers, meanwhile }
}

function outcome ({ status, headers, body: { code, provider } }: Answer): string {
  const session = headers['set-cookie'] === undefined ? '' : ', with a session'
  const again = headers['retry-after'] === undefined ? '' : `, again in ${headers['retry-after']} s`
  return `${status} ${code ?? provider}${session}${again}`
}

/** @param most less where all come at once than where garbage of a long attack is left */
async function assertMemory (t: Test, app: AppUnderLoad, idle: number, most = MOST_MEMORY): Promise<void> {
  const { highest } = await app.memory()
  t.ok(highest < idle + most, `${((highest - idle) / MIB).toFixed()} MiB more than idle, at most ${most / MIB}`)
}

async function assertAlive (t: Test, app: AppUnderLoad): Promise<void> {
  t.equal(outcome(await app.logIn(ADA)), SIGNED_IN)
  t.equal(await app.end(), 0)
}
