import { randomUUID } from 'node:crypto'
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { SignJWT } from 'jose'
import type { Test } from 'tap'
import { type AuthPluginOptions, MemoryAuthStore } from '../../lib/index.js'
import { type FakeOpenIdProvider, startFakeOpenIdProvider } from '../fakes/openid-provider.js'
import { SESSION_SECRET, localProvider, startApp } from './app.js'
import { Browser } from './browser.js'
import { DATA_SECRET } from './factor-app.js'
import { OwnProvider } from './own-provider.js'
import type { Kept } from './session-stores.js'

export const LOGOUT = '/auth/fake/backchannel-logout'
export const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }

/** An OpenID provider that tells of sign-outs, and applications on one store. */
export interface LogoutWorld {
  fake: FakeOpenIdProvider
  app: FastifyInstance
  /** What the applications have logged. */
  lines: string[]
  /** Starts another application on the same store, as another process does. */
  start: (options?: AuthPluginOptions, provider?: Parameters<FakeOpenIdProvider['provider']>[0]) => Promise<FastifyInstance>
}

export async function startLogoutWorld (
  t: Test, { store, sessions }: Kept = { store: new MemoryAuthStore(), sessions: undefined }, options: AuthPluginOptions = {}
): Promise<LogoutWorld> {
  const fake = await startFakeOpenIdProvider(t, 'https://id.example')
  const lines: string[] = []
  const stream = { write: (line: string) => { lines.push(line) } }
  const start: LogoutWorld['start'] = async (more = {}, provider = {}) => startApp(t, {
    baseUrl: 'https://app.example',
    providers: [
      fake.provider({ backChannelLogout: true, allowInsecureRequests: false, fetch: fake.fetch, ...provider }),
      new OwnProvider('other')
    ],
    local: localProvider(),
    dataSecret: DATA_SECRET,
    store,
    rateLimit: false,
    session: { secret: SESSION_SECRET, store: sessions },
    ...options,
    ...more
  }, { logger: { level: 'trace', stream } }, app => {
    app.get('/session', async ({ session }) => session)
    app.get('/guarded', { preHandler: app.auth.requireUser }, async () => 'here')
    app.post('/end-others', async request => app.auth.signOutEverywhere(app.auth.user(request).userId, { except: request }))
  })
  return { fake, app: await start(), lines, start }
}

/** Starts a sign-in: the path of its callback, which the browser has not sent yet. */
export async function comeBack (browser: Browser, fake: FakeOpenIdProvider, sid?: string): Promise<string> {
  fake.idTokenClaims = { ...fake.idTokenClaims, sid }
  const { headers: { location = '' } } = await browser.get('/auth/fake/login')
  return fake.consent(location)
}

export async function signInAtFake (app: FastifyInstance, fake: FakeOpenIdProvider, sid?: string, browser = new Browser(app)): Promise<Browser> {
  const { statusCode, headers, body } = await browser.get(await comeBack(browser, fake, sid))
  if (statusCode !== 302 || headers.location !== '/') throw new Error(`${statusCode} ${headers.location}: ${body}`)
  return browser
}

/** An honest logout token; a member of the changes that is undefined is left out. */
export async function logoutToken (
  fake: FakeOpenIdProvider, claims: Record<string, unknown>, header: Record<string, unknown> = {}
): Promise<string> {
  // Of the clock that jose reads, which advanceClock leaves alone.
  const now = Math.floor(new Date().getTime() / 1000)
  const payload = { iss: fake.issuer, aud: fake.clientId, iat: now, exp: now + 120, jti: randomUUID(), events: EVENTS, ...claims }
  return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: fake.jwk.kid ?? '', typ: 'logout+jwt', ...header }).sign(fake.key)
}

/** Sends a logout token as a provider does. */
export async function sendLogout (app: FastifyInstance, token: string, more: InjectOptions = {}): Promise<LightMyRequestResponse> {
  return app.inject({
    method: 'POST',
    url: LOGOUT,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({ logout_token: token }).toString(),
    ...more
  })
}
