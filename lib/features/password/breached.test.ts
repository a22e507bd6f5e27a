import { createHash } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { AuthError, MemoryAuthStore } from '../../index.js'
import { breached } from '../../passwords.js'
import type { BreachedOptions } from './checks.js'
import { LOCAL_SECRET, localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { freePort, listen } from '../../../test/helpers/loopback.js'

const CONTEXT = { email: 'ada@example.com', issuer: 'svc-auth-local', language: 'en' }
const BREACHED = { name: 'AuthError', code: 'breached_password', statusCode: 400 }

const hashOf = (password: string): string => createHash('sha1').update(password).digest('hex').toUpperCase()
const lineOf = (password: string, count: number): string => `${hashOf(password).slice(5)}:${count}`
const OTHERS = Array.from({ length: 800 }, (_, index) => lineOf(`other ${index}`, index % 3 === 0 ? 0 : index))

interface Warning {
  err: Error
  message: string
}

/** Starts a service that speaks the protocol of Pwned Passwords, and the check that asks it. */
async function withService (
  t: Test,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: BreachedOptions = {}
) {
  const requests: Array<Pick<IncomingMessage, 'method' | 'url' | 'headers'>> = []
  const port = await listen(t, createServer((request, response) => {
    requests.push(request)
    answer(request, response)
  }))
  const warnings: Warning[] = []
  const check = breached({
    fetch: async (input, init) => fetch(new URL(new URL(String(input)).pathname, `http://127.0.0.1:${port}`), init),
    log: { warn: ({ err }, message) => { warnings.push({ err: err as Error, message }) } },
    ...options
  })
  return { check, requests, warnings }
}

const answering = (...lines: string[]) => (_request: IncomingMessage, response: ServerResponse) => {
  response.end([...OTHERS.slice(0, 400), ...lines, ...OTHERS.slice(400)].join('\r\n'))
}

t.test('attack 41: a password of a breach is refused, another one is accepted', async t => {
  const { check, warnings } = await withService(t, answering(lineOf('correct horse', 7)))

  await t.rejects(async () => check('correct horse', CONTEXT), BREACHED)
  t.equal(await check('correct horse battery', CONTEXT), true)
  t.equal(check.unanswered, 0)
  t.strictSame(warnings, [])
})

t.test('the first and the last line of an answer count, with and without a line end', async t => {
  for (const text of [`${lineOf('correct horse', 1)}\r\n${OTHERS[0]}`, `${OTHERS[0]}\n${lineOf('correct horse', 1)}\n`, lineOf('correct horse', 1)]) {
    const { check } = await withService(t, (_request, response) => { response.end(text) })
    await t.rejects(async () => check('correct horse', CONTEXT), BREACHED)
  }
})

t.test('an entry that pads the answer, with the count 0, refuses nothing', async t => {
  const { check } = await withService(t, answering(lineOf('correct horse', 0)))

  t.equal(await check('correct horse', CONTEXT), true)
  t.equal(check.unanswered, 0)
})

t.test('the service receives five digits of the hash, and is asked for padding', async t => {
  const { check, requests } = await withService(t, answering())

  await check('correct horse', CONTEXT)

  t.match(requests, [{
    method: 'GET',
    url: `/range/${hashOf('correct horse').slice(0, 5)}`,
    headers: { 'add-padding': 'true', 'user-agent': 'fastify-svc-auth' }
  }])
  t.notOk(JSON.stringify(requests[0]?.headers).includes(hashOf('correct horse').slice(5)))
})

t.test('a compressed answer is read', async t => {
  const { check } = await withService(t, (_request, response) => {
    response.setHeader('Content-Encoding', 'gzip').end(gzipSync(lineOf('correct horse', 2)))
  })

  await t.rejects(async () => check('correct horse', CONTEXT), BREACHED)
})

const FAILURES: Array<[name: string, answer: (request: IncomingMessage, response: ServerResponse) => void, cause: RegExp]> = [
  ['fails', (_request, response) => { response.writeHead(503).end(lineOf('correct horse', 9)) }, /answered 503/],
  ['limits the requests', (_request, response) => { response.writeHead(429).end() }, /answered 429/],
  ['redirects', (_request, response) => { response.writeHead(302, { Location: 'https://example.com' }).end() }, /fetch failed/],
  ['answers with a page', (_request, response) => { response.end('<!doctype html><title>Sign in to the network</title>') }, /without a list/],
  ['answers with nothing', (_request, response) => { response.end() }, /without a list/],
  ['answers with more than 1 MiB', (_request, response) => {
    response.end(`${lineOf('correct horse', 9)}\n`.repeat(30_000))
  }, /more than 1048576 bytes/],
  ['hangs up', request => { request.socket.destroy() }, /fetch failed/],
  ['hangs up within its answer', (_request, response) => {
    response.write(lineOf('correct horse', 9), () => { response.destroy() })
  }, /terminated/]
]

for (const [name, answer, cause] of FAILURES) {
  t.test(`a service that ${name} refuses no password, and is reported`, async t => {
    const { check, warnings } = await withService(t, answer)

    t.equal(await check('correct horse', CONTEXT), true)

    t.equal(check.unanswered, 1)
    t.equal(warnings.length, 1)
    t.match(warnings[0]?.err.message, cause)
    t.match(warnings[0]?.message, /could not be compared/)
    t.notOk([/correct horse/, new RegExp(hashOf('correct horse').slice(5), 'i')].some(secret => secret.test(JSON.stringify(warnings))))
  })
}

t.test('a service that is slow is not waited for', async t => {
  const { check, warnings } = await withService(t, (_request, response) => { response.write(`${OTHERS[0]}\r\n`) }, { timeout: 50 })

  t.equal(await check('correct horse', CONTEXT), true)
  t.equal(check.unanswered, 1)
  t.match(warnings[0]?.err.message, /timeout|did not answer/)
})

t.test('a fetch that ignores its signal is not waited for', async t => {
  const warnings: unknown[] = []
  const check = breached({ timeout: 20, fetch: () => new Promise(() => {}), log: { warn: warning => { warnings.push(warning) } } })

  t.equal(await check('correct horse', CONTEXT), true)
  t.equal(warnings.length, 1)
})

t.test('without a log, a warning of the process says that the service did not answer', async t => {
  const port = await freePort()
  const warning = new Promise<Error & { code?: string }>(resolve => { process.once('warning', resolve) })
  const check = breached({ fetch: async () => fetch(`http://127.0.0.1:${port}/`) })

  t.equal(await check('correct horse', CONTEXT), true)
  t.match(await warning, { code: 'SVC_AUTH_BREACHED_UNANSWERED', message: /could not be compared.*fetch failed/ })
})

t.test('registration answers breached_password, and a login asks nothing', async t => {
  const { check, requests } = await withService(t, answering(lineOf('correct horse', 7)))
  const store = new MemoryAuthStore()
  const before = new Browser(await startApp(t, { store, local: localProvider() }))
  const browser = new Browser(await startApp(t, { store, local: localProvider({ password: { check } }) }))
  await before.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })

  const refused = await browser.post('/auth/local/register', { email: 'bob@example.com', password: 'correct horse' })
  const short = await browser.post('/auth/local/register', { email: 'bob@example.com', password: 'horse' })
  const page = await browser.submit('/auth/local/register', { email: 'bob@example.com', password: 'correct horse', error_next: '/join' })
  const asked = requests.length
  const login = await browser.post('/auth/local/login', { email: 'ada@example.com', password: 'correct horse' })

  t.match(refused.json(), { statusCode: 400, code: 'breached_password', message: new AuthError('breached_password').message })
  t.match(short.json(), { code: 'weak_password' })
  t.equal(page.headers.location, '/join?error=breached_password')
  t.equal(asked, 2, 'the service is not asked about a password that is too short')
  t.equal(login.statusCode, 200)
  t.equal(requests.length, asked)
})

t.test('a registration beyond its limit asks nothing', async t => {
  const { check, requests } = await withService(t, answering())
  const local = localProvider({ secret: LOCAL_SECRET, password: { check } })
  const browser = new Browser(await startApp(t, { local, rateLimit: { register: 1 } }))

  await browser.post('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' })
  const second = await browser.post('/auth/local/register', { email: 'bob@example.com', password: 'correct horse' })

  t.equal(second.statusCode, 429)
  t.equal(requests.length, 1)
})

t.test('a mistake in the options is refused with a sentence that names the option', async t => {
  const mistakes: Array<[options: object, message: RegExp]> = [
    [{ timout: 5 }, /^breached has no option "timout"; expected one of timeout, fetch, log$/],
    ...[0, -1, 1.5, 60_001, '2000', null].map((timeout): [object, RegExp] => [{ timeout }, /^breached: timeout must be/]),
    [{ fetch: 'https://example.com' }, /^breached: fetch must be a function/],
    ...[null, {}, console.log].map((log): [object, RegExp] => [{ log }, /^breached: log must be a log with a function warn/])
  ]
  for (const [options, message] of mistakes) t.throws(() => breached(options), { name: 'OptionsError', message })
})
