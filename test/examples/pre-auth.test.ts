import { statSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { LocalIdentityProvider } from '../../lib/index.js'
import { advanceClock } from '../helpers/clock.js'
import { isThorough } from '../helpers/thorough.js'
import { ExampleProcess, type Settings, settingsFor, startExample } from './example-process.js'
import { Visitor, userIdOn } from './visitor.js'

const ada = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
const settings = { ...await settingsFor(t), LOCAL_IDP_SECRET: 'a-secret-that-both-of-them-know.', LOG_LEVEL: 'info' }
const url = `http://localhost:${settings.PORT}`
const local = new LocalIdentityProvider({ secret: settings.LOCAL_IDP_SECRET })
/** It starts four processes. */
const IN_ALL = { skip: isThorough ? false : 'in test:all' }
const example = await startExample(t, settings)
const userId = await register(url)

t.test('the tool makes a link that signs in once', async t => {
  const { exitCode, output: link } = await makeLink(t, settings, 'Ada@Example.com')
  t.equal(exitCode, 0)
  t.equal(lifetime(link), 600)
  t.match(link, new RegExp(`^${url}/pre-auth\\?token=[\\w.-]+\n$`))

  const visitor = new Visitor()
  t.equal((await visitor.open(link)).headers.get('cache-control'), 'no-store')
  const claims = await visitor.press('Continue as ada@example.com')
  t.equal(claims.url.pathname, '/')
  t.match(claims.text, '<dt>name</dt><dd>Ada Lovelace</dd>')
  t.match(await followLink(link), { status: 401, text: 'This link was used already' })
})

t.test('with nothing configured the tool makes a link that signs in once, also when the application was started again', IN_ALL, async t => {
  const settings = await settingsFor(t)
  const url = `http://localhost:${settings.PORT}`
  const example = await startExample(t, settings)
  await register(url)
  const { exitCode, output: used } = await makeLink(t, settings, 'Ada@Example.com')
  const { output: unused } = await makeLink(t, settings, ada.email, '--minutes', '60')
  t.equal(exitCode, 0)
  t.same([used, unused].map(lifetime), [600, 3600])
  t.equal(statSync(settings.EXAMPLE_DB).mode & 0o777, 0o600, 'the file with the secret is the owner’s alone')
  t.match(used, new RegExp(`^${url}/pre-auth\\?token=[\\w.-]+\n$`))

  const visitor = new Visitor()
  t.equal((await visitor.open(used)).headers.get('cache-control'), 'no-store')
  const claims = await visitor.press('Continue as ada@example.com')
  t.equal(claims.url.pathname, '/')
  t.match(claims.text, '<dt>name</dt><dd>Ada Lovelace</dd>')
  t.match(await followLink(used), { status: 401, text: 'This link was used already' })

  await example.kill()
  await startExample(t, settings)
  t.match(await followLink(used), { status: 401, text: 'This link was used already' }, 'the process is new, the link is not')
  t.match(await followLink(unused), { status: 200, text: 'Ada Lovelace' }, 'and what was signed before is good')
})

t.test('one of many uses at once signs in', async t => {
  const link = linkWith(await local.issueIdToken(userId, {}, 60, { purpose: 'pre-auth' }))
  const visitors = Array.from({ length: 8 }, () => new Visitor())
  await Promise.all(visitors.map(async visitor => visitor.open(link)))

  const pages = await Promise.all(visitors.map(async visitor => visitor.press('Continue as ada@example.com')))
  t.same(pages.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401, 401, 401])
  const afterwards = await Promise.all(visitors.map(async visitor => visitor.open(url)))
  t.equal(afterwards.filter(page => page.url.pathname === '/').length, 1, 'and the others are nobody')
})

t.test('a used link is forgotten when it is too old to be used', async t => {
  const database = new SqliteDatabase(settings.EXAMPLE_DB)
  t.teardown(() => database.close())
  const now = Math.floor(Date.now() / 1000)
  for (const [jti, expiresAt] of [['old', now - 61], ['young', now - 1]]) database.prepare('INSERT INTO used_tokens VALUES (?, ?)').run(jti, expiresAt)

  await followLink(linkWith(await local.issueIdToken(userId, {}, 60, { purpose: 'pre-auth' })))
  t.same(database.prepare("SELECT jti FROM used_tokens WHERE jti IN ('old', 'young')").pluck().all(), ['young'])
})

t.test('a link that is fetched, by whatever looks at links in mails, is not used up', async t => {
  const link = linkWith(await local.issueIdToken(userId, {}, 60, { purpose: 'pre-auth' }))
  for (const method of ['GET', 'HEAD', 'GET']) {
    const { status, headers } = await fetch(link, { method })
    t.equal(status, 200)
    t.same(headers.getSetCookie(), [], 'and signs nobody in')
  }
  t.equal((await followLink(link)).status, 200)
})

t.test('a form on another site does not sign in, and uses no link up', async t => {
  const token = await local.issueIdToken(userId, {}, 60, { purpose: 'pre-auth' })
  const elsewhere = [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'https://elsewhere.example' }, { origin: 'null' }]
  for (const headers of elsewhere) {
    const response = await fetch(`${url}/pre-auth`, { method: 'POST', headers, body: new URLSearchParams({ token }), redirect: 'manual' })
    t.equal(response.status, 403)
    t.same(response.headers.getSetCookie(), [])
  }
  const own = await fetch(`${url}/pre-auth`, { method: 'POST', headers: { origin: url }, body: new URLSearchParams({ token }), redirect: 'manual' })
  t.equal(own.status, 303, 'an old browser says no more than the origin of the page')
})

t.test('a link is good for nothing once its time is over', async t => {
  advanceClock(t, -3_600_000)
  const token = await local.issueIdToken(userId, {}, 3599, { purpose: 'pre-auth' })

  t.equal((await fetch(linkWith(token))).status, 401)
  t.equal(await postToken(token), 401)
})

t.test('no other token is a link, and a link does not pass for another token', async t => {
  for (const use of [{}, { purpose: 'invitation' }, { audience: 'pre-auth' }, { audience: 'reports' }, { purpose: 'pre-auth', audience: 'reports' }]) {
    const token = await local.issueIdToken(userId, { offers: 'admin' }, 60, use)
    t.equal((await fetch(linkWith(token))).status, 401, `a page for ${JSON.stringify(use)}`)
    t.equal(await postToken(token), 401, `a sign-in with ${JSON.stringify(use)}`)
  }
  for (const [query, status] of [['', 400], ['?token=', 401], ['?token=a&token=b', 400], ['?token=a.b.c', 401]] as const) {
    t.equal((await fetch(`${url}/pre-auth${query}`)).status, status, query)
  }

  const token = await local.issueIdToken(userId, {}, 60, { purpose: 'pre-auth' })
  const verified = await fetch(`${url}/auth/local/verify-token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token })
  })
  t.equal(verified.status, 401)
  t.equal(await postToken(token), 303, 'though it is a good one')
})

t.test('the link of a deleted user leads nowhere', async t => {
  const token = await local.issueIdToken('8c2f1a8e-5f0b-4c0e-9a86-0f5d3b1c7e42', {}, 60, { purpose: 'pre-auth' })

  t.equal((await fetch(linkWith(token))).status, 401)
  t.equal(await postToken(token), 404)
})

t.test('the token of a link gets into no log and no Referer', async t => {
  const token = await local.issueIdToken(userId, {}, 60, { purpose: 'pre-auth' })
  const visitor = new Visitor()
  t.equal((await visitor.open(linkWith(token))).headers.get('referrer-policy'), 'strict-origin')
  await visitor.press('Continue as ada@example.com')
  t.equal((await visitor.open(linkWith(`${token}x`))).headers.get('referrer-policy'), 'strict-origin', 'nor does one that is refused')
  await visitor.open(`${url}/pre-auth/?token=${token}`)

  await fetch(`${url}/last`)
  await example.says('"url":"/last"')
  t.match(example.output, '"url":"/pre-auth"', 'the requests are in the log')
  t.notMatch(example.output, token)
})

async function register (url: string): Promise<string> {
  const visitor = new Visitor()
  await visitor.open(url)
  return userIdOn((await visitor.register(ada)).text)
}

async function makeLink (t: Test, settings: Settings, ...args: string[]): Promise<{ exitCode: number | null, output: string }> {
  const tool = new ExampleProcess(t, ['pre-auth-link.ts', ...args], { BASE_URL: `http://localhost:${settings.PORT}/`, ...settings })
  return { exitCode: await tool.end(), output: tool.output }
}

/** Seconds. */
function lifetime (link: string): number {
  const { iat = 0, exp = 0 } = decodeJwt(new URL(link).searchParams.get('token') ?? '')
  return exp - iat
}

function linkWith (token: string): string {
  return `${url}/pre-auth?token=${token}`
}

async function followLink (link: string) {
  const visitor = new Visitor()
  await visitor.open(link)
  return visitor.press('Continue as ada@example.com')
}

/** @returns the status of the answer */
async function postToken (token: string): Promise<number> {
  const { status } = await fetch(`${url}/pre-auth`, { method: 'POST', body: new URLSearchParams({ token }), redirect: 'manual' })
  return status
}
