import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { type AuthPluginOptions, type ExternalProvider, type Principal, SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, startApp } from './app.js'
import { Browser } from './browser.js'
import { OwnProvider, signInAt } from './own-provider.js'
import { SOME_SESSION_STORES } from './session-stores.js'

export const BASE_URL = 'https://app.example'
const PAGE = `${BASE_URL}/sign-in`

const STATUS = { invalid_state: 400, access_denied: 403, not_allowed: 403, account_exists: 409, provider_error: 502, provider_unavailable: 503 } as const
export type RefusalCode = keyof typeof STATUS

const TABLES = ['svc_auth_users', 'svc_auth_credentials', 'svc_auth_provider_links']

/** What takes a browser from the URL of an authorization request back to the application: path and query of the callback. */
export type Consent = (authorizationUrl: string) => string | Promise<string>

/** An application that people sign in to by providers that may lie, and by one that never does (`honest`). */
export interface AppUnderAttack {
  app: FastifyInstance
  /** The log. */
  lines: string[]
  /** The accounts in the database. */
  accounts: () => unknown
}

/** A test with each session store, or with one of them before a commit, which it gets an application on. */
export function withEverySessionStore (
  t: Test,
  name: string,
  test: (t: Test, start: (...providers: ExternalProvider[]) => Promise<AppUnderAttack>) => Promise<void>
): void {
  for (const [sessions, create] of SOME_SESSION_STORES) {
    t.test(`${name}, with ${sessions}`, async t => {
      const session = { secret: SESSION_SECRET, store: create() }
      await test(t, async (...providers) => startAppUnderAttack(t, { providers, session }))
    })
  }
}

async function startAppUnderAttack (t: Test, { providers = [], session }: Pick<AuthPluginOptions, 'providers' | 'session'>): Promise<AppUnderAttack> {
  const database = new SqliteDatabase(':memory:')
  t.teardown(() => database.close())
  const lines: string[] = []
  const options = { baseUrl: BASE_URL, providers: [...providers, new OwnProvider('honest')], store: new SqlAuthStore(database), session }
  const app = await startApp(t, options, { logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } } })
  return { app, lines, accounts: () => TABLES.map(table => database.prepare(`select * from ${table}`).all()) }
}

/** Goes to a provider and comes back; ends at the login route when that is where it fails. */
export async function comeBack (browser: Browser, provider: string, consent: Consent, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
  const login = await browser.get(`/auth/${provider}/login`, headers)
  const { location = '' } = login.headers
  return URL.canParse(location) ? browser.get(await consent(location), headers) : login
}

/** Signs somebody in at the provider, and asserts that he is. */
export async function assertSignsIn (t: Test, { app }: AppUnderAttack, provider: string, consent: Consent, message = 'signs in'): Promise<Principal> {
  const browser = new Browser(app)
  t.equal((await comeBack(browser, provider, consent)).headers.location, '/', message)
  const { principal } = (await browser.get('/me')).json()
  t.equal(principal?.provider, provider, `${message}: /me`)
  return principal
}

/**
 * Asserts the safe answer to a lie: a stranger stays one and is shown the code on the page that he came from; somebody who is signed in
 * stays who he is and has the code with its status; no cookie is set, no account is written, and the log has a line.
 */
export async function assertRefused (t: Test, { app, lines, accounts }: AppUnderAttack, provider: string, code: RefusalCode, consent: Consent): Promise<void> {
  const [stranger, member] = [new Browser(app), new Browser(app)]
  t.equal((await signInAt(member, 'honest', { subject: 'grace', email: 'grace@example.com' })).headers.location, '/', 'other providers are as ever')
  const before = [(await member.get('/me')).json().principal, accounts()]

  const [page, answer] = await Promise.all([
    comeBack(stranger, provider, consent, { referer: PAGE }),
    comeBack(member, provider, consent, { accept: 'application/json' })
  ])

  t.strictSame([page.statusCode, page.headers.location], [302, `/sign-in?error=${code}`], 'the page')
  t.strictSame([answer.statusCode, answer.json().code], [STATUS[code], code], 'the answer to a script')
  t.strictSame([page, answer].map(({ headers }) => headers['set-cookie']), [undefined, undefined], 'no cookie')
  t.equal((await stranger.get('/me')).json().principal, null, 'nobody is signed in')
  t.strictSame([(await member.get('/me')).json().principal, accounts()], before, 'nobody is somebody else, and nothing was written')
  t.ok(lines.some(line => JSON.parse(line).code === code), 'the log has a line')
}
