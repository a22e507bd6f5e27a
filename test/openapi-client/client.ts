/** A client whose types are the shipped document alone: it calls each operation once. Compiled by `../openapi-clients.long.ts`. */
import createClient, { type Middleware } from 'openapi-fetch'
import type { paths } from './auth.js'

export interface Called {
  /** The path as the document names it. */
  path: string
  method: string
  status: number
  type: string
  body: string
}

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const TOKEN = { token: 'no token' }
const CODE = { code: '000000' }
const RESPONSE = { response: { id: 'none' } }
const PAGE = { parseAs: 'text', headers: { accept: 'text/html' } } as const
const PROVIDER = { path: { provider: 'own' } }
const CONNECTION = { path: { id: '00000000-0000-4000-8000-000000000000' } } as const

/** A client that keeps the session, and lists what it called. */
function clientOf (baseUrl: string, called: Called[]) {
  let cookie = ''
  const asBrowser: Middleware = {
    async onRequest ({ request }) {
      request.headers.set('cookie', cookie)
      return new Request(request, { redirect: 'manual' })
    },
    async onResponse ({ schemaPath, request, response }) {
      for (const set of response.headers.getSetCookie()) [cookie = ''] = set.split(';')
      const [type = ''] = response.headers.get('content-type')?.split(';') ?? []
      called.push({ path: schemaPath, method: request.method, status: response.status, type, body: await response.clone().text() })
    }
  }
  const auth = createClient<paths>({ baseUrl, headers: { accept: 'application/json' } })
  auth.use(asBrowser)
  return auth
}

/** Calls the authorization server, of which the user is signed in. */
async function callServer (auth: ReturnType<typeof clientOf>): Promise<void> {
  const client = { client_id: 'cli' }
  await auth.GET('/.well-known/oauth-authorization-server')
  await auth.POST('/auth/oauth/token', { body: { ...client, grant_type: 'refresh_token' } })
  await auth.POST('/auth/oauth/revoke', { body: client })
  await auth.POST('/auth/oauth/introspect', { body: TOKEN })
  await auth.POST('/auth/oauth/device', { body: client })
  await auth.POST('/auth/oauth/register', { body: { redirect_uris: ['https://client.example/callback'] } })
  await auth.GET('/auth/oauth/authorize', PAGE)
  await auth.POST('/auth/oauth/authorize', { body: { waiting: 'none', seen: 'nothing', decision: 'deny' } })
  await auth.GET('/auth/device', PAGE)
  await auth.POST('/auth/device', { body: { user_code: 'BCDF-GHJK' } })
  await auth.POST('/auth/local/grants/end', { body: { client: 'cli' } })
  await auth.POST('/auth/local/keys', { body: { name: 'Script', scopes: 'introspect' } })
  await auth.POST('/auth/local/keys/end', { body: { id: 'A'.repeat(12) } })
}

/** Calls what an application has whose users confirm their address first. */
export async function registerFirst (baseUrl: string, called: Called[]): Promise<void> {
  const auth = clientOf(baseUrl, called)
  await auth.POST('/auth/local/register', { body: { email: ADA.email, password: '' } })
  await auth.GET('/auth/local/register', { ...PAGE, params: { query: TOKEN } })
}

/** Calls everything else. */
export async function callEach (baseUrl: string, called: Called[]): Promise<void> {
  const auth = clientOf(baseUrl, called)
  const { data: visitor } = await auth.GET('/auth/session')
  if (visitor?.principal !== null || !visitor.offers.password) throw new Error('a visitor has no principal')
  const { data: registered } = await auth.POST('/auth/local/register', { body: ADA })
  if (typeof registered?.userId !== 'string') throw new Error('a registration answers the principal')
  const { data: token } = await auth.POST('/auth/local/token')
  const verified = await auth.POST('/auth/local/verify-token', { body: { token: token?.token ?? '' } })
  if (verified.data?.sub !== registered.userId) throw new Error('the token is that of the user')

  await auth.GET('/auth/local/jwks.json')
  await auth.POST('/auth/local/reauthenticate', { body: { password: ADA.password } })
  await auth.POST('/auth/pages/name', { body: { name: 'Ada' } })
  await auth.POST('/auth/local/verify-email', { body: {} })
  await auth.POST('/auth/local/change-email', { body: { email: 'countess@example.com' } })
  await auth.POST('/auth/local/change-email/confirm', { body: TOKEN })
  await auth.POST('/auth/local/set-password', { body: { password: 'battery staple' } })
  await auth.POST('/auth/local/change-password', { body: { current: ADA.password, password: 'battery staple' } })
  await auth.POST('/auth/local/sessions/end', { body: { id: 'A'.repeat(32) } })
  await auth.POST('/auth/pages/unlink', { body: { provider: 'own' } })
  await auth.GET('/auth/{provider}/login', { params: { ...PROVIDER, query: { next: '/', link: 'true' } }, ...PAGE })
  await auth.POST('/auth/{provider}/login', { params: PROVIDER, body: { link: 'true' } })
  await auth.GET('/auth/{provider}/signed-out', { params: PROVIDER, ...PAGE })
  await auth.GET('/auth/{provider}/callback', { params: { ...PROVIDER, query: { state: 'none' } } })
  await auth.POST('/auth/{provider}/backchannel-logout', { params: PROVIDER, body: { logout_token: 'x' } })
  await auth.POST('/auth/connections/start', { body: { email: ADA.email } })
  await auth.GET('/auth/connections/{id}/login', { params: { ...CONNECTION, query: { next: '/' } } })
  await auth.POST('/auth/connections/{id}/login', { params: CONNECTION, body: {} })
  await auth.GET('/auth/connections/{id}/callback', { params: { ...CONNECTION, query: { state: 'none' } } })
  await auth.POST('/auth/connections/{id}/backchannel-logout', { params: CONNECTION, body: { logout_token: 'x' } })

  const { data: enrolment } = await auth.POST('/auth/local/totp/enroll', { body: {} })
  if (enrolment?.secret.length !== 32) throw new Error('an enrolment has a secret')
  await auth.GET('/auth/local/totp', PAGE)
  await auth.POST('/auth/local/totp/confirm', { body: CODE })
  await auth.POST('/auth/local/totp/remove', { body: {} })
  await auth.POST('/auth/local/recovery-codes', { body: {} })
  await auth.GET('/auth/local/second-factor', PAGE)
  await auth.POST('/auth/local/second-factor', { body: CODE })
  await auth.POST('/auth/local/passkeys/options', { body: { for: 'login' } })
  await auth.POST('/auth/local/passkeys/register', { body: RESPONSE })
  await auth.POST('/auth/local/passkeys/login', { body: RESPONSE })
  await auth.POST('/auth/local/passkeys/rename', { body: { id: 'none', name: 'Phone' } })
  await auth.POST('/auth/local/passkeys/remove', { body: { id: 'none' } })
  await auth.GET('/auth/local/passkeys/script.js', { parseAs: 'text' })

  const pages = [
    '/auth/pages/sign-in', '/auth/pages/register', '/auth/pages/forgot-password', '/auth/pages/link-sent',
    '/auth/pages/account', '/auth/pages/confirm', '/auth/pages/factors', '/auth/pages/create-passkey'
  ] as const
  for (const page of pages) await auth.GET(page, PAGE)
  const ofLinks = ['/auth/local/reset-password', '/auth/local/verify-email', '/auth/local/change-email/confirm'] as const
  for (const page of ofLinks) await auth.GET(page, { ...PAGE, params: { query: TOKEN } })
  await auth.GET('/auth/local/mail-login', PAGE)
  await auth.GET('/.well-known/change-password', PAGE)
  await auth.GET('/.well-known/webauthn')
  await auth.GET('/.well-known/passkey-endpoints')

  await callServer(auth)

  await auth.POST('/auth/local/revoke', { body: {} })
  await auth.POST('/auth/local/forgot-password', { body: { email: ADA.email } })
  await auth.POST('/auth/local/reset-password', { body: { ...TOKEN, password: 'battery staple' } })
  await auth.POST('/auth/local/mail-login', { body: { email: ADA.email } })
  await auth.POST('/auth/local/mail-login/confirm', { body: CODE })
  const { data: principal } = await auth.POST('/auth/local/login', { body: { email: ADA.email, password: 'battery staple' } })
  if (principal?.userId !== registered.userId) throw new Error('the password is the new one')
  await auth.POST('/auth/local/delete-account', { body: { current: 'battery staple' } })
  await auth.POST('/auth/logout', { body: { everywhere: true } })
}
