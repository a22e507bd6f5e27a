/** Guests: who they are, what they may, and how they become users. */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { MemorySessionStore } from '../../../bench/parts/memory-session-store.js'
import { ApiKeys } from '../../api-keys.js'
import {
  AuthError, type AuthPluginOptions, type GuestSignIn, type LocalIdentityProviderOptions, type Principal, SignInRefused,
  SqlAuthStore
} from '../../index.js'
import { SecondFactor } from '../../second-factor.js'
import { SESSION_SECRET, startApp } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { nextCode } from '../../../test/helpers/factor-app.js'
import { ADA, type MailApp } from '../../../test/helpers/mail-app.js'
import { callbackOf, signInAt, startAt } from '../../../test/helpers/own-provider.js'
import { newDevice, signInBy, startPasskeyApp } from '../../../test/helpers/passkey-app.js'
import { SOME_STORES } from '../../../test/helpers/stores.js'

const DAY_MS = 24 * 60 * 60_000
const BOB = { subject: 'bob', email: 'bob@example.com' }
const RATE_LIMIT = { register: 1000, mail: 1000, factor: 1000, challenge: 1000, code: 1000, guest: 1000 }

interface Shop extends MailApp {
  /** Makes the visitor of a browser a guest, whose id it returns. */
  enter: (browser?: Browser) => Promise<string>
}

async function start (
  t: Test, options: AuthPluginOptions = {}, local: LocalIdentityProviderOptions = {}
): Promise<Shop> {
  const store = new SqlAuthStore(':memory:')
  t.teardown(() => store.close())
  const shop = await startPasskeyApp(t, { store, guests: {}, rateLimit: RATE_LIMIT, ...options }, local)
  const { browser: visitor } = shop
  const enter = async (browser: Browser = visitor) => {
    const answer = await browser.post('/basket')
    if (answer.statusCode !== 200) throw new Error(answer.body)
    return answer.json<Principal>().userId
  }
  return { ...shop, enter }
}

t.beforeEach(t => { t.context.routes = addRoutes })

function addRoutes (app: FastifyInstance): void {
  const { requireClaims, requireCaller } = app.auth
  app.post('/basket', async request => app.auth.signInGuest(request))
  app.get('/basket', { preHandler: requireClaims({}, { guests: true }) }, async request => request.principal)
  app.get('/vip', { preHandler: requireClaims({ role: 'vip' }, { guests: true }) }, async request => request.principal)
  app.get('/shown', async request => request.principal)
  app.get('/calls', { preHandler: requireCaller({ by: ['session'], guests: true }) }, async request => app.auth.caller(request))
  app.get('/users-call', { preHandler: requireCaller({ by: ['session'] }) }, async () => 'a user')
  app.post('/sign-in/:id', async request => app.auth.signIn(request, String(Object(request.params).id)))
}
