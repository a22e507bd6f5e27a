/** The example with Next.js: built, started and visited as people do. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { startChromium } from '../browser/chromium.js'
import { send } from '../browser/page-steps.js'
import { Visitor, barriersOn } from '../browser/visitor.js'
import { ExampleProcess } from '../examples/example-process.js'
import { LOCAL_SECRET, SESSION_SECRET } from '../helpers/app.js'
import { freePort } from '../helpers/loopback.js'

const EXAMPLE = join(import.meta.dirname, '../../examples/nextjs')
const NEXT = 'node_modules/next/dist/bin/next'

const ADA = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
const GRACE = { name: 'Grace Hopper', email: 'grace@example.com', password: 'the first compiler' }

t.setTimeout(15 * 60_000)
const folder = await mkdtemp(join(tmpdir(), 'svc-auth-nextjs-'))
t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
const [port, nextPort] = [await freePort(), await freePort()]
const url = `http://localhost:${port}`
await build()
await start(t)

async function build (): Promise<void> {
  const isSource = (path: string): boolean => !['node_modules', '.next'].includes(basename(path))
  await cp(EXAMPLE, folder, { recursive: true, filter: isSource })
  await run('npm', 'ci', '--prefer-offline', '--no-audit', '--no-fund')
  await run(process.execPath, NEXT, 'build')
}

/** By env, not the option env: tap adds its loaders to that. */
function commandOf (...command: string[]): [string, string[]] {
  const without = ['NODE_OPTIONS', 'NODE_V8_COVERAGE'].flatMap(name => ['-u', name])
  return ['env', [...without, 'NEXT_TELEMETRY_DISABLED=1', `FASTIFY_URL=${url}`, ...command]]
}

async function run (...command: string[]): Promise<void> {
  await promisify(execFile)(...commandOf(...command), { cwd: folder })
}

async function start (t: Test): Promise<void> {
  const next = spawn(...commandOf(process.execPath, NEXT, 'start', '--hostname', 'localhost', '--port', String(nextPort)), {
    cwd: folder, stdio: ['ignore', 'pipe', 'inherit']
  })
  const ended = once(next, 'close')
  t.teardown(async () => {
    next.kill('SIGKILL')
    await ended
  })
  const lines = createInterface(next.stdout)
  const ready = new Promise<void>(resolve => { lines.on('line', line => { if (line.includes('Ready in')) resolve() }) })
  await Promise.race([ready, ended.then(() => { throw new Error('Next.js ended') })])

  const fastify = new ExampleProcess(t, ['nextjs/server.ts'], {
    PORT: String(port),
    BASE_URL: url,
    NEXT_URL: `http://localhost:${nextPort}`,
    SVC_SESSION_SECRET: SESSION_SECRET,
    LOCAL_IDP_SECRET: LOCAL_SECRET,
    LOCAL_AUTH_DB: join(folder, 'users.db')
  })
  await fastify.says('Server listening')
}

/** Registers by JSON, as a mobile client does; resolves to the session cookie. */
async function register (user: typeof ADA): Promise<string> {
  const answer = await fetch(`${url}/auth/local/register`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(user)
  })
  const [cookie = ''] = answer.headers.getSetCookie()
  return cookie.replace(/;.*/, '')
}

async function open (path: string, cookie: string, headers: Record<string, string> = {}): Promise<{ answer: Response, body: string }> {
  const answer = await fetch(url + path, { headers: { cookie, ...headers }, redirect: 'manual' })
  return { answer, body: await answer.text() }
}

t.test('a visitor of a protected page registers, is back on it, signs out and signs in again', async t => {
  const visitor = await Visitor.with(await startChromium(), t)
  const page = await visitor.open(`${url}/account`)
  t.equal(page.url(), `${url}/auth/pages/sign-in?next=/account`)

  await page.getByRole('link', { name: 'Create an account' }).click()
  await send(page, 'Create an account', ADA)
  await page.getByText(`The order of ${ADA.email}`).waitFor()
  t.equal(page.url(), `${url}/account`)
  t.strictSame(await barriersOn(page), [])

  const reloaded = await page.reload()
  t.match(await reloaded?.text(), `The order of ${ADA.email}`, 'the server renders it')

  await send(page, 'Sign out')
  await page.getByRole('link', { name: 'Sign in' }).waitFor()
  t.equal(page.url(), `${url}/`)
  await page.goBack()
  await page.waitForLoadState('networkidle')
  t.notMatch(await page.content(), ADA.email, 'the browser keeps no page of the user')
  await page.goto(`${url}/account`)
  t.equal(page.url(), `${url}/auth/pages/sign-in?next=/account`)

  await send(page, 'Sign in', { email: ADA.email, password: ADA.password })
  await page.getByText(`The order of ${ADA.email}`).waitFor()
  t.equal(page.url(), `${url}/account`)
  t.strictSame(visitor.complaints.filter(complaint => !complaint.endsWith('/favicon.ico')), [])
})

t.test('a link that Next.js follows by a script leads a visitor to the sign-in page too', async t => {
  const visitor = await Visitor.with(await startChromium(), t)
  const page = await visitor.open(url)

  await page.getByRole('link', { name: 'your orders' }).click()
  await page.waitForURL(`${url}/auth/pages/sign-in?next=%2Faccount`)
  await page.getByRole('link', { name: 'Create an account' }).click()
  await send(page, 'Create an account', { ...ADA, email: 'countess@example.com' })

  await page.getByText('The order of countess@example.com').waitFor()
  t.equal(page.url(), `${url}/account`)
})

t.test('the pages work without scripts', async t => {
  const visitor = await Visitor.with(await startChromium(), t, { scripts: false })
  const page = await visitor.open(`${url}/account`)
  await page.getByRole('link', { name: 'Create an account' }).click()
  await send(page, 'Create an account', { ...ADA, email: 'lady@example.com' })
  await page.getByText('The order of lady@example.com').waitFor()

  await send(page, 'Sign out')

  await page.getByRole('link', { name: 'Sign in' }).waitFor()
  t.equal(page.url(), `${url}/`)
})

t.test('a forged cookie is one of a visitor', async t => {
  const cookie = await register({ ...ADA, email: 'forged@example.com' })
  t.match((await open('/account', cookie)).body, 'forged@example.com')
  const [name, value = ''] = cookie.split('=')
  const forged = ['', `${name}=forged`, `${name}=${value.replace(/\..*/, '')}`, `${cookie.slice(0, -1)}${cookie.endsWith('A') ? 'B' : 'A'}`]

  for (const cookie of forged) {
    const { answer, body } = await open('/account', cookie)
    t.equal(answer.status, 307, cookie)
    t.equal(answer.headers.get('location'), '/auth/pages/sign-in?next=/account')
    t.notMatch(body, 'forged@example.com')
    t.match((await open('/', cookie)).body, '>Sign in<')
    t.equal((await open('/api/order', cookie)).answer.status, 401)
  }
})

t.test('no page of a user is another one’s, and no cache keeps it', async t => {
  const emails = ['first@example.com', 'second@example.com']
  const cookies = await Promise.all(emails.map(async email => register({ ...GRACE, email })))

  await Promise.all(Array.from({ length: 16 }, async (_, index) => {
    const [email = '', other = ''] = index % 2 === 0 ? emails : emails.toReversed()
    // As browsers ask for a page, and as scripts of Next.js do.
    const [type, path, headers] = index % 4 < 2 ? ['text/html', '/account', {}] as const : ['text/x-component', '/account?_rsc', { RSC: '1' }] as const
    const { answer, body } = await open(path, cookies[index % 2] ?? '', headers)
    t.match(answer.headers.get('content-type'), type)
    t.match(body, email)
    t.notMatch(body, other)
    t.match(answer.headers.get('cache-control'), 'no-store')
    const visit = await open('/', '')
    t.notMatch(visit.body, /@example\.com/)
    t.equal(visit.answer.headers.get('set-cookie'), null, 'a visitor has no cookie')
  }))

  await fetch(`${url}/auth/logout`, { method: 'POST', headers: { cookie: cookies[0] ?? '' } })
  t.equal((await open('/account', cookies[0] ?? '')).answer.status, 307, 'the cookie of a session that has ended')
  t.match((await open('/account', cookies[1] ?? '')).body, emails[1])
})
