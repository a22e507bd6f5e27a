import { randomBytes } from 'node:crypto'
import type { Refusal } from './authorization-codes.js'
import { type Answer, html, json } from './lies.js'
import { type ReceivedRequest, StandIn, redirectTo } from './stand-in.js'

/** An entry of `GET /user/emails`. */
export interface GitHubEmail {
  email: string
  primary: boolean
  verified: boolean
  visibility: 'public' | 'private' | null
}

const DOCS = 'https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors'

/** The errors of the token endpoint, in GitHub's words. */
const TOKEN_ERRORS = {
  bad_verification_code: 'The code passed is incorrect or expired.',
  incorrect_client_credentials: 'The client_id and/or client_secret passed are incorrect.',
  redirect_uri_mismatch: 'The redirect_uri MUST match the registered callback URL for this application.',
  unverified_user_email: 'The user must have a verified primary email.',
  unsupported_grant_type: 'The grant type is not supported.'
} as const

export type GitHubTokenError = keyof typeof TOKEN_ERRORS

const REFUSALS: Readonly<Record<Exclude<Refusal, 'unknown client'>, GitHubTokenError>> = {
  'no form': 'unsupported_grant_type',
  'no secret': 'incorrect_client_credentials',
  'wrong secret': 'incorrect_client_credentials',
  'unknown code': 'bad_verification_code',
  'used code': 'bad_verification_code',
  'expired code': 'bad_verification_code',
  'other redirect URI': 'redirect_uri_mismatch',
  'no verifier': 'bad_verification_code',
  'wrong verifier': 'bad_verification_code'
}

const SCOPES = ['user', 'read:user', 'user:email', 'user:follow', 'read:org', 'repo']
const WITHIN_USER = ['read:user', 'user:email', 'user:follow']

const API_VERSIONS = ['2022-11-28', '2026-03-10']
const RATE = { 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '4987', 'x-ratelimit-reset': '1795000000' }

/** GitHub at github.com, as an Enterprise Server with a host of its own, or with data residency at a subdomain of ghe.com. */
export class GitHubStandIn extends StandIn {
  readonly clientId = 'Ov23liExample0000001'
  readonly clientSecret = '0c5f7d1eexample00000000000000000000000a1'
  readonly hosts: readonly string[]

  user: Record<string, unknown> = {
    login: 'ada-example',
    id: 583231,
    node_id: 'MDQ6VXNlcjU4MzIzMQ==',
    avatar_url: 'https://avatars.example/u/583231?v=4',
    gravatar_id: '',
    html_url: 'https://github.com/ada-example',
    type: 'User',
    user_view_type: 'private',
    site_admin: false,
    name: 'Ada Example',
    company: null,
    blog: '',
    // The public profile address: null unless the person shows one.
    email: null,
    bio: null,
    notification_email: null,
    two_factor_authentication: true
  }

  emails: GitHubEmail[] = [
    { email: 'old@example.org', primary: false, verified: false, visibility: null },
    { email: '583231+ada-example@users.noreply.github.com', primary: false, verified: true, visibility: null },
    { email: 'ada@example.com', primary: true, verified: true, visibility: 'private' }
  ]

  /** What the person grants of what was asked for; null: all of it. */
  grants: readonly string[] | null = null
  /** Since 2026; older Enterprise Servers do not. */
  sendsIss = true
  /** Nobody has seen whether error callbacks carry it. */
  sendsIssOnErrors = true
  /** Not at older Enterprise Servers. */
  knowsPkce = true
  isSuspended = false
  /** A GitHub App without the permission to read addresses, in place of an OAuth App. */
  isGitHubApp = false
  /** Whether the token endpoint turns away people who never verified their primary address. */
  demandsVerifiedEmail = false

  readonly #host: string
  readonly #api: string
  /** Scopes by token. */
  readonly #tokens = new Map<string, readonly string[]>()

  constructor (host = 'github.com') {
    super('https://app.example/auth/github/callback')
    const hasApiHost = host === 'github.com' || host.endsWith('.ghe.com')
    this.#host = host
    this.#api = hasApiHost ? `api.${host}` : `${host}/api/v3`
    this.hosts = hasApiHost ? [host, this.#api] : [host]
  }

  /**
   * A redirect URI that is not registered sends the browser to the registered one, with an error: that is no way back to who asked.
   * What the browser gets is in the message.
   */
  override async authorize (authorizationUrl: string): Promise<string> {
    const callback = await super.authorize(authorizationUrl)
    if (callback.includes('error=redirect_uri_mismatch')) throw new Error(callback)
    return callback
  }

  protected answer (request: ReceivedRequest): Answer {
    const { method, host, path } = request
    const target = `${host}${path}`
    if (method === 'GET' && target === `${this.#host}/login/oauth/authorize`) return this.#authorization(request.query)
    if (method === 'POST' && target === `${this.#host}/login/oauth/access_token`) return this.#token(request)
    if (target.startsWith(`${this.#api}/`)) return this.#resource(request, target.slice(this.#api.length))
    return html(404, 'This is not the web page you are looking for.')
  }

  #authorization (query: URLSearchParams): Answer {
    const iss = `https://${this.#host}/login/oauth`
    const state = query.get('state')
    const redirectUri = query.get('redirect_uri') ?? ''
    const [registered = ''] = this.redirectUris
    const refused = (error: string, description: string, to = redirectUri) => redirectTo(to, {
      error, error_description: description, error_uri: DOCS, state, ...(this.sendsIss && this.sendsIssOnErrors && { iss })
    })
    if (query.get('client_id') !== this.clientId) return html(404, 'Page not found')
    if (!isWithin(redirectUri, registered)) return refused('redirect_uri_mismatch', TOKEN_ERRORS.redirect_uri_mismatch, registered)

    // A mistake of the client that nobody has seen GitHub's answer to; it must not pass.
    const mistake = mistakeIn(query)
    if (mistake !== null) return html(400, mistake)

    if (this.isSuspended) return refused('application_suspended', 'Your application has been suspended. Contact support@github.com.')
    if (!this.consents) return refused('access_denied', 'The user has denied your application access.')
    const remembered = new URLSearchParams(query)
    if (!this.knowsPkce) remembered.delete('code_challenge')
    return redirectTo(redirectUri, { code: this.issueCode(remembered), state, ...(this.sendsIss && { iss }) })
  }

  #token (request: ReceivedRequest): Answer {
    const authorization = this.redeem(request)
    if (authorization === 'unknown client') return formatted(request, 404, { error: 'Not Found' })
    if (typeof authorization === 'string') return formatted(request, 200, tokenError(REFUSALS[authorization]))
    if (this.demandsVerifiedEmail && !this.emails.some(({ primary, verified }) => primary && verified)) {
      return formatted(request, 200, tokenError('unverified_user_email'))
    }

    const asked = authorization.scope.split(' ').filter(scope => scope !== '')
    const scopes = this.isGitHubApp ? [] : normalized(this.grants ?? asked)
    const token = (this.isGitHubApp ? 'ghu_' : 'gho_') + randomBytes(18).toString('hex')
    this.#tokens.set(token, scopes)
    return formatted(request, 200, {
      access_token: token,
      ...(this.isGitHubApp && { expires_in: '28800', refresh_token: `ghr_${randomBytes(18).toString('hex')}`, refresh_token_expires_in: '15811200' }),
      scope: scopes.join(','),
      token_type: 'bearer'
    })
  }

  #resource ({ method, headers, query }: ReceivedRequest, path: string): Answer {
    if ((headers['user-agent'] ?? '') === '') {
      return {
        status: 403,
        headers: { 'content-type': 'text/plain' },
        body: 'Request forbidden by administrative rules. Please make sure your request has a User-Agent header'
      }
    }
    const version = headers['x-github-api-version']
    if (version !== undefined && !API_VERSIONS.includes(String(version))) {
      const isRetired = /^20\d\d-\d\d-\d\d$/.test(String(version)) && String(version) < '2022-11-28'
      return isRetired ? apiError(410, 'This API version is no longer supported.') : apiError(400, 'This API version is not supported.')
    }
    const [, token] = /^(?:Bearer|token) (.+)$/i.exec(headers.authorization ?? '') ?? []
    if (token === undefined) return apiError(401, 'Requires authentication')
    const scopes = this.#tokens.get(token)
    if (scopes === undefined) return BAD_CREDENTIALS

    const rate = { ...RATE, 'x-oauth-scopes': scopes.join(', ') }
    if (method === 'GET' && path === '/user') return json(200, this.user, rate)
    if (method === 'GET' && path === '/user/emails') {
      if (this.isGitHubApp) return apiError(403, 'Resource not accessible by integration')
      if (!scopes.includes('user') && !scopes.includes('user:email')) return apiError(404, 'Not Found')
      return this.#emailPage(query, rate)
    }
    return apiError(404, 'Not Found')
  }

  #emailPage (query: URLSearchParams, headers: Record<string, string>): Answer {
    const size = Math.min(Number(query.get('per_page') ?? 30), 100)
    const page = Number(query.get('page') ?? 1)
    const next = `https://${this.#api}/user/emails?per_page=${size}&page=${page + 1}`
    const hasMore = this.emails.length > page * size
    return json(200, this.emails.slice((page - 1) * size, page * size), { ...headers, ...(hasMore && { link: `<${next}>; rel="next"` }) })
  }
}

/** What the token endpoint says of a failure, with status 200. */
export function tokenError (error: GitHubTokenError): Record<string, string> {
  return { error, error_description: TOKEN_ERRORS[error], error_uri: `${DOCS}#${error.replaceAll('_', '-')}` }
}

export const BAD_CREDENTIALS = apiError(401, 'Bad credentials')

/** The limit of an hour, or the secondary one, which may say when to come back, or with nothing but words that it is one. */
export const RATE_LIMITS: readonly Answer[] = [
  apiError(403, 'API rate limit exceeded for user ID 583231.', { 'x-ratelimit-remaining': '0' }),
  apiError(403, 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.', { 'retry-after': '60' }),
  apiError(403, 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'),
  apiError(429, 'API rate limit exceeded for user ID 583231.', { 'x-ratelimit-remaining': '0' })
]

export function apiError (status: number, message: string, headers: Record<string, string> = {}): Answer {
  return json(status, { message, documentation_url: 'https://docs.github.com/rest', status: String(status) }, { ...RATE, ...headers })
}

/** JSON only for who asks for it. */
function formatted ({ headers }: ReceivedRequest, status: number, body: Record<string, string>): Answer {
  const cache = { 'cache-control': 'no-store' }
  if (headers.accept?.includes('application/json') === true) {
    const { expires_in: seconds, ...rest } = body
    return json(status, { ...rest, ...(seconds !== undefined && { expires_in: Number(seconds) }) }, cache)
  }
  return { status, headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8', ...cache }, body: new URLSearchParams(body).toString() }
}

/** Whether host (or a subdomain of it) and port are those of the registered URL, and the path is the registered one or below it. */
function isWithin (redirectUri: string, registered: string): boolean {
  if (!URL.canParse(redirectUri)) return false
  const [asked, base] = [new URL(redirectUri), new URL(registered)]
  const isSameHost = asked.hostname === base.hostname || asked.hostname.endsWith(`.${base.hostname}`)
  return asked.protocol === base.protocol && isSameHost && asked.port === base.port && `${asked.pathname}/`.startsWith(`${base.pathname}/`)
}

function mistakeIn (query: URLSearchParams): string | null {
  const unknown = (query.get('scope') ?? '').split(' ').find(scope => scope !== '' && !SCOPES.includes(scope))
  if (unknown !== undefined) return `there is no scope "${unknown}"`
  const [challenge, method] = [query.get('code_challenge'), query.get('code_challenge_method')]
  if (challenge === null) return method === null ? null : 'code_challenge_method without code_challenge'
  return method === 'S256' && /^[\w-]{43}$/.test(challenge) ? null : 'code_challenge must be made with S256'
}

/** `user` covers what is below it. */
function normalized (scopes: readonly string[]): readonly string[] {
  return scopes.includes('user') ? scopes.filter(scope => !WITHIN_USER.includes(scope)) : scopes
}
