/** The forms of the pages, in applications with more and fewer acts, for users who have all that an account can have. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type AuthPluginOptions, type LocalIdentityProviderOptions, SqlAuthStore } from '../../lib/index.js'
import { ApiKeys } from '../../lib/api-keys.js'
import { Connections } from '../../lib/connections.js'
import { OAuthServer } from '../../lib/oauth-server.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { signedIn } from '../../lib/testing.js'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET, enrolAt, startFactorApp } from '../helpers/factor-app.js'
import { ADA, BASE_URL, type MailApp, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { LIBRARY } from '../helpers/library.js'
import { OwnProvider, linkAt } from '../helpers/own-provider.js'
import { addAt, newDevice } from '../helpers/passkey-app.js'
import { type ShownPage, pageOf } from './page.js'

const GRACE = { email: 'grace@example.com', password: 'battery staple' }

const passkeys = new Passkeys({ name: 'Shop' })
const secondFactor = new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 30 } })
const oauthServer = new OAuthServer({
  resources: { [`${BASE_URL}/mcp`]: { scopes: { read: 'Read your notes' } } },
  clients: [{ client_id: 'assistant', client_name: 'Assistant', redirect_uris: ['https://client.example/callback'] }],
  device: { clients: ['assistant'] }
})
const REQUEST = new URLSearchParams({
  response_type: 'code',
  client_id: 'assistant',
  redirect_uri: 'https://client.example/callback',
  code_challenge: 'c'.repeat(43),
  code_challenge_method: 'S256'
})
const apiKeys = new ApiKeys({ prefix: 'shop', scopes: { 'orders:read': 'Read your orders' }, selfService: true })
const noRoutes = {
  changePassword: false, setPassword: false, changeEmail: false, deleteAccount: false, forgotPassword: false, sessionsEnd: false
}

/** From no act of a password to all acts. */
const APPLICATIONS: Array<[local: LocalIdentityProviderOptions | null, options?: AuthPluginOptions]> = [
  [null],
  [null, { passkeys }],
  [{ sendMail: undefined }],
  [{ sendMail: undefined }, { secondFactor, passkeys }],
  [{}],
  [{ accountRoutes: noRoutes }],
  [{ registration: { verify: 'required' } }],
  [{ registration: { verify: 'first', roles: ['member'] } }],
  [{ registration: false, signInByMail: true, mails: { limits: false } }, { rateLimit: {} }],
  [{ password: false, signInByMail: true, mails: { limits: false } }, { passkeys, rateLimit: {} }],
  [
    { password: false, registration: { passkey: true }, signInByMail: true, mails: { limits: false } },
    { passkeys, secondFactor, rateLimit: {} }
  ],
  [{ registration: { passkey: true, roles: ['member'] } }, { passkeys }],
  [{}, { secondFactor, oauthServer, apiKeys, connections: new Connections(), impersonation: { allow: () => true } }],
  [{ signInByMail: true, mails: { limits: false } }, { rateLimit: {}, secondFactor, passkeys: new Passkeys({ name: 'Shop', createOnSignIn: true }) }]
]

const PAGES = [
  ...['sign-in', 'register', 'forgot-password', 'link-sent', 'confirm', 'confirm?second_factor=true', 'account', 'factors',
    'factors?lost=true', 'create-passkey'].map(page => `pages/${page}`),
  'local/totp', 'local/second-factor', 'local/mail-login', 'device', `oauth/authorize?${REQUEST}`, 'a/login?link=true', 'b/login?link=true'
].map(path => `/auth/${path}`)

/** Starts an application with pages, and makes those that it may share its users with. */
async function startAll (t: Test): Promise<Array<{ app: FastifyInstance, mails: MailApp['mails'] | null }>> {
  const store = new SqlAuthStore(':memory:')
  const shared = { store, dataSecret: DATA_SECRET, pages: new Pages({ name: 'Shop' }) }
  const full = await startFactorApp(t, {}, { ...shared, passkeys, secondFactor })
  const token = await registerAt(full)
  await confirmAddress(full.browser, token)
  await linkAt(full.browser, 'a', { subject: 'ada-a' })
  await addAt(full.browser, newDevice())
  await enrolAt(t, full.browser)
  const other = await startMailApp(t, { ...shared })
  await registerAt(other, GRACE)
  return Promise.all(APPLICATIONS.map(async ([local, options]) => local === null
    ? {
        app: await startApp(t, {
          ...shared, baseUrl: BASE_URL, rateLimit: false, providers: [new OwnProvider('a'), new OwnProvider('b')], ...options
        }),
        mails: null
      }
    : startMailApp(t, { ...shared, ...options }, local)))
}

/** What sends a link, with the kind of its mail. */
const LINKS = [
  ['forgot-password', 'reset-password'], ['register', 'register'], ['verify-email', 'verify-email'],
  ['change-email', 'change-email'], ['mail-login', 'sign-in']
] as const

/** Opens the pages as a visitor, and as users with all and with little. */
async function openAll (app: FastifyInstance, mails: MailApp['mails'] | null): Promise<ShownPage[]> {
  const shown: ShownPage[] = []
  for (const email of [null, ADA.email, GRACE.email]) {
    const user = email === null ? null : await app.auth.findUser({ email })
    const { cookie = '' } = user === null ? {} : await signedIn(app, { userId: user.userId, methods: ['password', 'totp'] })
    const browser = new Browser(app, new Map([[cookie.split('=', 1).join(), cookie.slice(cookie.indexOf('=') + 1)]]))
    const links: string[] = []
    for (const [path, kind] of LINKS) {
      const answer = await browser.post(`/auth/local/${path}`, { email: ['register', 'change-email'].includes(path) ? 'new@example.com' : ADA.email })
      if (answer.statusCode === 202) links.push(String((await mails?.next(kind))?.url).replace(BASE_URL, ''))
    }
    for (const url of [...PAGES, ...links]) shown.push(pageOf(await browser.get(url, { accept: 'text/html' })))
    // With factors, the sign-in waits.
    await browser.post('/auth/local/login', ADA)
    shown.push(pageOf(await browser.get('/auth/local/second-factor', { accept: 'text/html' })))
  }
  return shown
}

const sources = [...LIBRARY.values()]

t.test('each form and each button of each page leads to an act that is mounted, and each form is that of an act', async t => {
  const apps = await startAll(t)
  const lost = new Set<string>()
  let count = 0
  for (const { app, mails } of apps) {
    for (const { url, forms } of await openAll(app, mails)) {
      count += forms.length
      for (const { action } of forms) if (!app.hasRoute({ method: 'POST', url: action })) lost.add(`${action} on ${url}`)
    }
  }
  t.strictSame([...lost], [])
  t.ok(count > 500, `${count} forms`)

  const asked = sources.flatMap(source => Array.from(source.matchAll(/formPaths\.(?:get|has)\(([^)]*)\)/g), ([call]) => call))
  const paths = asked.flatMap(call => Array.from(call.matchAll(/'([^']+)'/g), ([, path]) => `/auth/${path}`))
  t.ok(paths.length > 20, `${paths.length} paths`)
  t.strictSame(paths.filter(url => !apps.some(({ app }) => app.hasRoute({ method: 'POST', url }))), [], 'no path is misspelt')
})

t.test('the path of a form comes from the acts that are mounted, and from nowhere else', async t => {
  t.strictSame(sources.filter(source => /\b(?:action\(|action: )\s*(?:[`']|pathOf)/.test(source)), [])
})
