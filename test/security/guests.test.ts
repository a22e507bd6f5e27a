/** As a property of attack 212: a guest is a visitor to everything that does not name guests. */
import type { FastifyInstance, FastifyRequest, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { ApiKeys } from '../../lib/api-keys.js'
import { type Guard, type Principal, SqlAuthStore } from '../../lib/index.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider } from '../helpers/own-provider.js'
import { actsOfLastApp, wholeApp } from '../helpers/whole-app.js'

const PASSWORD = 'correct horse'

/** So that no answer is about a limit. */
const RATE_LIMIT = Object.fromEntries(['register', 'login', 'mail', 'factor', 'code', 'guest'].map(name => [name, 10_000]))

/** What shows a guest. */
const NAMES_GUESTS = ['GET /auth/session']

/** What guards a route, without a word of guests. */
const guardsOf = ({ auth }: FastifyInstance): Record<string, Guard> => ({
  requireUser: auth.requireUser,
  'requireClaims of none': auth.requireClaims({}),
  'requireClaims of a claim that the guest has': auth.requireClaims({ role: 'vip' }),
  requireVerified: auth.requireVerified,
  requireRecent: auth.requireRecent({ within: 600 }),
  requireSecondFactor: auth.requireSecondFactor,
  'requireCaller by session': auth.requireCaller({ by: ['session'] }),
  'requireCaller by anything': auth.requireCaller({ by: ['session', 'key', 'token'] }),
  requireBearer: auth.requireBearer,
  anyOf: auth.anyOf(auth.requireUser, auth.requireClaims({ role: 'vip' })),
  none: async () => {}
})

/** What handlers call for the user of a request. */
const calls: Readonly<Record<string, (app: FastifyInstance, request: FastifyRequest, userId: string) => unknown>> = {
  user: ({ auth }, request) => auth.user(request),
  caller: ({ auth }, request) => auth.caller(request),
  refresh: async ({ auth }, request) => ({ principal: await auth.refresh(request) }),
  createKey: ({ auth }, request, userId) => auth.createKey({ userId, name: 'mine', scopes: ['read'] }, { request }),
  'createKey by the operator': ({ auth }, _, userId) => auth.createKey({ userId, name: 'mine', scopes: ['read'] }, { actor: 'ops' }),
  signInUrl: ({ auth }, request) => auth.signInUrl('own', { link: true, request }),
  signIn: ({ auth }, request, userId) => auth.signIn(request, userId),
  impersonate: ({ auth }, request, userId) => auth.impersonate(request, userId, { reason: 'a ticket' })
}

async function start (t: Test): Promise<FastifyInstance> {
  return startApp(t, {
    ...wholeApp(() => {}),
    store: new SqlAuthStore(':memory:'),
    rateLimit: RATE_LIMIT,
    providers: [new OwnProvider('own')],
    apiKeys: new ApiKeys({ prefix: 'shop', scopes: { read: 'Read' }, selfService: true }),
    impersonation: { allow: () => true },
    guests: {}
  }, {}, app => {
    app.post('/basket', async request => app.auth.signInGuest(request))
    app.post<{ Body: { call: string, userId: string } }>('/call', async request =>
      ({ value: await calls[request.body.call]?.(app, request, request.body.userId) }))
    for (const [index, preHandler] of Object.values(guardsOf(app)).entries()) {
      app.get(`/guarded/${index}`, { preHandler }, async request => app.auth.user(request))
    }
    app.get('/basket', { preHandler: [app.auth.refresh, app.auth.requireClaims({ role: 'vip' }, { guests: true })] }, async request => app.auth.user(request))
  })
}

async function guestIn (app: FastifyInstance, claims: Record<string, string> = { role: 'vip' }) {
  const browser = new Browser(app)
  const { userId } = (await browser.post('/basket')).json<Principal>()
  await app.auth.grant(userId, claims)
  return { browser, userId }
}

/** What an answer says, without what is new in each. */
function told ({ statusCode, headers: { location = '' }, body }: LightMyRequestResponse) {
  const shown = (text: string): string => text.replace(/[\w-]{16,}|ada|eve/g, '…')
  return { statusCode, location: shown(String(location)), text: shown(body) }
}

t.test('attack 212: each act answers a guest as a visitor without a session', async t => {
  const app = await start(t)
  const acts = actsOfLastApp()
  const fieldsOf = (email: string) => ({ email, password: PASSWORD, current: PASSWORD, token: 'x', code: '123456', id: 'x'.repeat(32), name: 'x' })
  t.ok(acts.length > 50, `${acts.length} acts`)
  t.strictSame(NAMES_GUESTS.filter(act => !acts.includes(act)), [])
  for (const act of acts) {
    if (NAMES_GUESTS.includes(act)) continue
    const [method, url = ''] = act.split(' ')
    const { browser } = await guestIn(app, {})
    const visitor = new Browser(app)
    if (method === 'GET') {
      for (const accept of ['text/html', 'application/json']) {
        t.strictSame(told(await browser.get(url, { accept })), told(await visitor.get(url, { accept })), `${act} for ${accept}`)
      }
      continue
    }
    // Mails to one address are limited, whoever asks for them.
    const [ada, eve] = [fieldsOf('ada@example.com'), fieldsOf('eve@example.com')]
    t.strictSame(told(await browser.submit(url, ada)), told(await visitor.submit(url, eve)), `${act} as a form`)
    t.strictSame(told(await browser.post(url, ada)), told(await visitor.post(url, eve)), `${act} as JSON`)
  }
})

t.test('attack 212: a guest passes no guard that does not name guests', async t => {
  const app = await start(t)
  const { browser, userId } = await guestIn(app)
  t.match((await browser.get('/basket')).json(), { userId, guest: true, claims: { role: 'vip' } }, 'but one that does')
  for (const [index, name] of Object.keys(guardsOf(app)).entries()) {
    const path = `/guarded/${index}`
    const answer = told(await browser.get(path))
    t.equal(answer.statusCode, 401, name)
    t.strictSame(answer, told(await new Browser(app).get(path)), name)
  }
})

t.test('attack 212: what handlers call for the user of a request, or for a guest, refuses them', async t => {
  const app = await start(t)
  const { browser, userId } = await guestIn(app)
  const codes = Object.fromEntries(await Promise.all(Object.keys(calls).map(async call => {
    const { code = null, value } = (await browser.post('/call', { call, userId })).json()
    return [call, code ?? value]
  })))
  t.strictSame(codes, {
    user: 'unauthenticated',
    caller: 'unauthenticated',
    refresh: { principal: { userId, provider: 'guest', claims: { sub: userId, role: 'vip' }, guest: true } },
    createKey: 'unauthenticated',
    'createKey by the operator': 'forbidden',
    signInUrl: 'unauthenticated',
    signIn: 'forbidden',
    impersonate: 'unauthenticated'
  })
  t.match(await app.auth.findUser({ userId }), { guest: true, claims: { role: 'vip' } }, 'the guest is there as before')
})

t.test('attack 212: nobody sees the application as a guest', async t => {
  const app = await start(t)
  const support = new Browser(app)
  await support.post('/auth/local/register', { email: 'sue@example.com', password: PASSWORD })
  const { userId } = await guestIn(app)
  t.match((await support.post('/call', { call: 'impersonate', userId })).json(), { code: 'forbidden' })
})
