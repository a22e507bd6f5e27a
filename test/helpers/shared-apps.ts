import type { SessionStore } from '@fastify/session'
import type { FastifyInstance, Session } from 'fastify'
import type { Test } from 'tap'
import { type AuthPluginOptions, type AuthStore, type ExternalProvider, MemoryAuthStore } from '../../lib/index.js'
import type { SignInOptions } from '../../lib/features/app-auth/auth.js'
import { digestOf } from '../../lib/base/values.js'
import { type FoundSession, type StoredSessions, capabilitiesOf } from '../../lib/session/store.js'
import { SESSION_SECRET, localProvider, startApp } from './app.js'
import type { Browser } from './browser.js'
import { OwnProvider } from './own-provider.js'
import type { Kept, SessionStores } from './session-stores.js'

export const ADA = { email: 'ada@example.com', password: 'correct horse' }
export const GRACE = { email: 'grace@example.com', password: 'a nanosecond of wire' }

/** A provider that proves when the user authenticated. */
export class ProvingProvider extends OwnProvider {
  readonly provesAuthTime = true
}

/** What several applications share. */
export interface Shared {
  /** Default the sessions of the store. */
  sessions?: SessionStores
  /** Default one in memory. */
  store?: AuthStore
  /** Providers besides `a` and `proving`. */
  providers?: ExternalProvider[]
  options?: AuthPluginOptions
}

/**
 * Starts two applications that share the store of users and the sessions, as two processes do.
 * Each has guarded routes, the provider `a`, and `proving`, which proves when the user
 * authenticated.
 */
export async function startTwoApps (
  t: Test,
  { sessions, store = new MemoryAuthStore(), providers = [], options }: Shared = {}
): Promise<[FastifyInstance, FastifyInstance]> {
  const start = async (): Promise<FastifyInstance> => startApp(t, {
    baseUrl: 'http://app.example',
    providers: [new OwnProvider('a'), new ProvingProvider('proving'), ...providers],
    local: localProvider(),
    store,
    rateLimit: false,
    ...options,
    session: { secret: SESSION_SECRET, store: sessions, ...options?.session }
  }, {}, addGuardedRoutes)
  return Promise.all([start(), start()])
}

function addGuardedRoutes (app: FastifyInstance): void {
  const { auth } = app
  const isRecent = auth.requireRecent({ within: 600 })
  const isAdmin = auth.requireClaims({ role: 'admin' })
  const guarded = {
    '/private': auth.requireUser,
    '/anyone': auth.requireClaims({}),
    '/api': auth.requireBearer,
    '/transfer': isRecent,
    '/api/transfer': [auth.requireBearer, isRecent],
    '/recent-or-admin': auth.anyOf(isRecent, isAdmin),
    '/admin-or-recent': auth.anyOf(isAdmin, isRecent)
  }
  for (const [url, preHandler] of Object.entries(guarded)) app.get(url, { preHandler }, async () => 'passed')
  app.get('/refreshed', { preHandler: [auth.refresh, auth.requireUser] }, async () => 'passed')
  app.get('/authentication', async ({ authentication }) => ({ authentication }))
  app.get('/cart', async ({ session }) => ({ cart: Reflect.get(session, 'cart') ?? null }))
  app.post('/cart', async ({ session }) => Object.assign(session, { cart: 'apples' }).cart)
  app.post('/long-cookie', async ({ session }) => {
    session.cookie.maxAge = 90 * 24 * 60 * 60 * 1000
    return {}
  })
  app.post<{ Params: { userId: string }, Body: SignInOptions | null }>('/sign-in/:userId', async request =>
    auth.signIn(request, request.params.userId, request.body ?? {}))
  app.post<{ Params: { userId: string } }>('/sign-in-alone/:userId', async request => {
    await auth.signIn(request, request.params.userId)
    await auth.signOutEverywhere(request.params.userId, { except: request })
    return {}
  })
  app.post<{ Body: { userId?: string } | null }>('/end-others', async request => {
    await auth.signOutEverywhere(request.body?.userId ?? auth.user(request).userId, { except: request })
    return {}
  })
  app.post<{ Body: { password: string } }>('/change-password', async request => {
    await auth.setPassword(auth.user(request).userId, request.body.password, { except: request })
    return {}
  })
}

/** The session id in the cookie of a browser. */
export function sessionIdOf ({ cookies }: Browser, name = 'svc_session'): string {
  const [id = ''] = (cookies.get(name) ?? '').split('.')
  return id
}

/** What is kept of a session; null without an entry, or when it has ended. */
export async function stored ({ sessions, store }: Kept, id: string): Promise<Session | FoundSession | null> {
  if (sessions === undefined) return openSession(rowsOf(store), digestOf(id))
  if (sessions === 'memory') throw new Error('these sessions are in no store that a test reaches')
  return new Promise((resolve, reject) => {
    sessions.get(id, (error, session) => { error ? reject(error) : resolve(session ?? null) })
  })
}

/** The sessions that a store of users keeps. */
export function rowsOf (store: AuthStore): StoredSessions {
  const { sessions } = capabilitiesOf(store)
  if (sessions === null) throw new Error('this store keeps no sessions')
  return sessions
}

/** Returns a session that has not ended; null without one. */
export async function openSession (sessions: StoredSessions, idHash: string, now = Date.now()): Promise<FoundSession | null> {
  const found = await sessions.find(idHash, now)
  return typeof found === 'string' ? null : found
}

/** Changes the plugin's part of a browser's session in a session store, as an attacker who can write there does. */
export async function editRecord (
  sessions: SessionStore,
  browser: Browser,
  edit: (record: Record<string, unknown>) => void
): Promise<void> {
  const id = sessionIdOf(browser)
  const session = await new Promise<Session>((resolve, reject) => {
    sessions.get(id, (error, session) => { session ? resolve(session) : reject(error ?? new Error('there is no session')) })
  })
  edit(Object(session.svcAuth))
  await new Promise<void>((resolve, reject) => {
    sessions.set(id, session, error => { error ? reject(error) : resolve() })
  })
}
