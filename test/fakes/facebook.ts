import { createHmac, randomBytes } from 'node:crypto'
import { isPlainObject } from '../../lib/claims.js'
import type { Refusal } from './authorization-codes.js'
import { type Answer, html, json } from './lies.js'
import { type ReceivedRequest, StandIn, redirectTo } from './stand-in.js'

/** The member `error` of an answer of the Graph API. */
export interface GraphError {
  message: string
  type: string
  code: number
  error_subcode?: number
}

const exception = (message: string, code: number, subcode?: number): GraphError => {
  return { message, type: 'OAuthException', code, ...(subcode !== undefined && { error_subcode: subcode }) }
}

const REFUSALS: Readonly<Record<Refusal, GraphError>> = {
  'no form': exception('Missing redirect_uri parameter.', 191),
  'no secret': exception('Missing client_secret parameter.', 101),
  'unknown client': exception('Error validating application. Cannot get application info due to a system error.', 101),
  'wrong secret': exception('Error validating client secret.', 1),
  'unknown code': exception('Invalid verification code format.', 100),
  'used code': exception('This authorization code has been used.', 100, 36009),
  'expired code': exception('This authorization code has expired.', 100, 36007),
  'other redirect URI': exception(
    'Error validating verification code. Please make sure your redirect_uri is identical to the one you used in the OAuth dialog request',
    100,
    36008
  ),
  'no verifier': exception('Invalid code verifier. Code verifier should be sent for this code.', 100),
  'wrong verifier': exception('Invalid code verifier. Code verifier does not match the code challenge.', 100)
}

const SCOPES = ['email', 'public_profile', 'openid', 'user_link']
const FIELDS = ['id', 'name', 'email', 'picture', 'first_name', 'last_name']

/** With or without a version: an expired or absent one is served by the oldest that still lives. */
const PATH = /^\/(?:v\d{1,2}\.\d\/)?(dialog\/oauth|oauth\/access_token|me)$/

/** Facebook Login and the Graph API. Of the two forms of the token request it takes only POST: a secret in a URL ends up in logs. */
export class FacebookStandIn extends StandIn {
  readonly clientId = '1200000000000042'
  readonly clientSecret = '5d41402aexample0000000000000000b'
  readonly hosts = ['www.facebook.com', 'graph.facebook.com']

  /** A member that Facebook does not tell is missing. */
  user: Record<string, unknown> = {
    id: '10220000000000001',
    name: 'Ada Example',
    email: 'ada@example.com',
    picture: { data: { is_silhouette: false, url: 'https://lookaside.example/profilepic/?asid=10220000000000001&ext=1797600000&hash=AbExample' } }
  }

  /** Whether the person leaves the tick at the e-mail address. */
  grantsEmail = true
  /** What sends the person back with `error_code` and `error_message`, and no `error`. */
  dialogFailure: { error_code: string, error_message: string } | null = null
  /** "Require app secret" of the app's settings. */
  requiresProof = false
  /** Whether tokens have ended by the time they are used. */
  tokensExpire = false
  /** Calls its JSON `text/javascript`, as it used to. */
  answersAsJavaScript = false
  /** Nobody has seen whether it does without the scope `openid`. */
  checksChallenge = true
  /** Granted permissions by token. */
  readonly #tokens = new Map<string, readonly string[]>()

  constructor () {
    super('https://app.example/auth/facebook/callback')
  }

  protected answer (request: ReceivedRequest): Answer {
    const [, path = ''] = PATH.exec(request.path) ?? []
    switch (`${request.method} ${request.host} ${path}`) {
      case 'GET www.facebook.com dialog/oauth': return this.#dialog(request.query)
      case 'POST graph.facebook.com oauth/access_token': return this.#asAnnounced(this.#token(request))
      case 'GET graph.facebook.com me': return this.#asAnnounced(this.#me(request))
      default: return html(404, 'This page isn\'t available')
    }
  }

  #dialog (query: URLSearchParams): Answer {
    const state = query.get('state')
    const redirectUri = query.get('redirect_uri') ?? ''
    if (query.get('client_id') !== this.clientId) return html(400, 'Invalid App ID: The provided app ID does not look like a valid app ID.')
    if (!this.redirectUris.includes(redirectUri)) {
      return html(
        400,
        'URL Blocked: This redirect failed because the redirect URI is not whitelisted in the app\'s Client OAuth Settings.'
      )
    }
    if ((query.get('response_type') ?? 'code') !== 'code') return html(400, 'Invalid response type')
    const unknown = scopesOf(query.get('scope')).find(scope => !SCOPES.includes(scope))
    if (unknown !== undefined) return html(400, `Invalid Scopes: ${unknown}.`)

    const back = (parameters: Record<string, string>) => redirectTo(redirectUri, { ...parameters, state }, '_=_')
    if (this.dialogFailure !== null) return back(this.dialogFailure)
    if (!this.consents) return back({ error: 'access_denied', error_code: '200', error_description: 'Permissions error', error_reason: 'user_denied' })
    const remembered = new URLSearchParams(query)
    if (!this.checksChallenge) remembered.delete('code_challenge')
    return back({ code: this.issueCode(remembered, { prefix: 'AQB', bytes: 120 }) })
  }

  #token (request: ReceivedRequest): Answer {
    const authorization = this.redeem(request)
    if (typeof authorization === 'string') return graphError(REFUSALS[authorization], { kind: 'invalid_code' })
    const token = `EAAGm0PX4ZCps${randomBytes(90).toString('base64url')}`
    this.#tokens.set(token, scopesOf(authorization.scope).filter(scope => scope !== 'email' || this.grantsEmail))
    return json(200, { access_token: token, token_type: 'bearer', expires_in: 5183944 }, { 'cache-control': 'no-store' })
  }

  #me ({ headers, query }: ReceivedRequest): Answer {
    const [, bearer] = /^(?:Bearer|OAuth) (.+)$/.exec(headers.authorization ?? '') ?? []
    const token = bearer ?? query.get('access_token')
    if (token === null) return graphError(exception('An active access token must be used to query information about the current user.', 2500))
    const permissions = this.#tokens.get(token)
    if (permissions === undefined) return graphError(exception('Invalid OAuth access token - Cannot parse access token', 190), { kind: 'invalid_token' })
    if (this.tokensExpire) {
      return graphError(
        exception(
        `Error validating access token: Session has expired on Tuesday, 01-Dec-26 00:00:00 PST. The token was ${token}.`,
        190,
        463
        ),
        { kind: 'invalid_token' }
      )
    }

    const proof = query.get('appsecret_proof')
    if (proof === null && this.requiresProof) {
      return graphError({
        message: 'API calls from the server require an appsecret_proof argument',
        type: 'GraphMethodException',
        code: 100
      })
    }
    if (proof !== null && proof !== createHmac('sha256', this.clientSecret).update(token).digest('hex')) {
      return graphError({ message: 'Invalid appsecret_proof provided in the API argument', type: 'GraphMethodException', code: 100 })
    }

    const fields = fieldsOf(query.get('fields') ?? 'id,name')
    if (fields === null) return graphError(exception('(#2500) Syntax error in the field list', 2500))
    const unknown = [...fields.keys()].find(field => !FIELDS.includes(field))
    if (unknown !== undefined) return graphError(exception(`(#100) Tried accessing nonexisting field (${unknown}) on node type (User)`, 100))
    if (!permissions.includes('email')) fields.delete('email')

    const told = Object.entries(this.user).filter(([member]) => member === 'id' || fields.has(member))
    return json(200, Object.fromEntries(told.map(([member, value]) => [member, member === 'picture' ? sized(value, fields.get('picture')) : value])))
  }

  #asAnnounced (answer: Answer): Answer {
    return this.answersAsJavaScript ? asJavaScript(answer) : answer
  }
}

/** How the Graph API says that something went wrong, with a header that is no valid challenge. */
export function graphError (
  error: GraphError,
  {
    kind = 'invalid_request',
    status = 400,
    headers = {}
  }: { kind?: string, status?: number, headers?: Record<string, string> } = {}
): Answer {
  const challenge = `OAuth "Facebook Platform" "${kind}" "${error.message}"`
  return json(status, { error: { ...error, fbtrace_id: 'AHtohT4VFYAhXExample' } }, { 'www-authenticate': challenge, 'cache-control': 'no-store', ...headers })
}

export function asJavaScript ({ headers, ...answer }: Answer): Answer {
  return { ...answer, headers: { ...headers, 'content-type': 'text/javascript; charset=UTF-8' } }
}

function scopesOf (scope: string | null): string[] {
  return (scope ?? '').split(/[ ,]+/).filter(name => name !== '')
}

/**
 * The fields asked for, each with its modifiers: `picture.width(200).height(200)` is `picture` with width and height 200.
 *
 * @returns null when it is not a list of fields
 */
function fieldsOf (list: string): Map<string, Map<string, string>> | null {
  const fields = new Map<string, Map<string, string>>()
  for (const field of list.split(/,(?![^(]*\))/)) {
    const [, name, modifiers] = /^(\w+)((?:\.\w+\([^()]*\))*)$/.exec(field) ?? []
    if (name === undefined || modifiers === undefined) return null
    fields.set(name, new Map([...modifiers.matchAll(/\.(\w+)\(([^()]*)\)/g)].map(([, modifier = '', value = '']) => [modifier, value])))
  }
  return fields
}

/** A picture in the size asked for; 50 pixels unless told. What a test put there in place of a picture stays as it is. */
function sized (picture: unknown, modifiers = new Map<string, string>()): unknown {
  if (!isPlainObject(picture) || !isPlainObject(picture.data)) return picture
  const side = (name: string) => Number(modifiers.get(name) ?? 50)
  return { ...picture, data: { height: side('height'), width: side('width'), ...picture.data } }
}
