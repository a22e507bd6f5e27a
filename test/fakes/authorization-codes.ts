import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** What a person agreed to. */
export interface Authorization {
  redirectUri: string
  /** Of PKCE, with S256; absent when the client sent none. */
  challenge: string | null
  nonce: string | null
  scope: string
}

/** Why a code is not taken, in the order in which providers look. */
export type Refusal =
  | 'no form' | 'no secret' | 'unknown client' | 'wrong secret' | 'unknown code' | 'used code' | 'expired code'
  | 'other redirect URI' | 'no verifier' | 'wrong verifier'

export interface TokenRequest {
  method: string
  headers: IncomingHttpHeaders
  form: URLSearchParams
}

/** The codes of an authorization server: each is good once, for the client, the redirect URI and the verifier that it was issued for. */
export class AuthorizationCodes {
  readonly #issued = new Map<string, { authorization: Authorization, isUsed: boolean }>()

  /** A code for what an authorization request asks for. */
  issue (query: URLSearchParams, { prefix = '', bytes = 16 } = {}): string {
    const code = prefix + randomBytes(bytes).toString('base64url')
    const isHashed = query.get('code_challenge_method') === 'S256'
    this.#issued.set(code, {
      isUsed: false,
      authorization: {
        redirectUri: query.get('redirect_uri') ?? '',
        challenge: isHashed ? query.get('code_challenge') : null,
        nonce: query.get('nonce'),
        scope: query.get('scope') ?? ''
      }
    })
    return code
  }

  /** Takes a token request (RFC 6749 section 4.1.3, RFC 7636 section 4.6): client in the body or in the Authorization header. */
  redeem (
    { method, headers, form }: TokenRequest,
    { clientId, clientSecret, codesExpire = false }: { clientId: string, clientSecret: string, codesExpire?: boolean }
  ): Authorization | Refusal {
    const contentType = headers['content-type']?.split(';', 1)[0]
    if (method !== 'POST' || contentType !== 'application/x-www-form-urlencoded' || form.get('grant_type') !== 'authorization_code') return 'no form'
    const [id, secret] = credentialsOf(headers, form)
    if (id !== clientId) return 'unknown client'
    if (secret === null) return 'no secret'
    if (secret !== clientSecret) return 'wrong secret'

    const code = this.#issued.get(form.get('code') ?? '')
    if (code === undefined) return 'unknown code'
    if (code.isUsed) return 'used code'
    if (codesExpire) return 'expired code'
    const { authorization } = code
    if (form.get('redirect_uri') !== authorization.redirectUri) return 'other redirect URI'
    if (authorization.challenge !== null) {
      const verifier = form.get('code_verifier')
      if (verifier === null) return 'no verifier'
      if (createHash('sha256').update(verifier).digest('base64url') !== authorization.challenge) return 'wrong verifier'
    }
    code.isUsed = true
    return authorization
  }
}

/** The body of a request, if it is a form. */
export async function formOf (request: IncomingMessage): Promise<URLSearchParams> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')
  return new URLSearchParams(isForm === true ? body : '')
}

/** Both ways of RFC 6749 section 2.3.1. */
function credentialsOf (headers: IncomingHttpHeaders, form: URLSearchParams): [id: string | null, secret: string | null] {
  const [, basic] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? []
  if (basic === undefined) return [form.get('client_id'), form.get('client_secret')]
  const [id = null, secret = null] = Buffer.from(basic, 'base64').toString().split(':').map(part => decodeURIComponent(part.replaceAll('+', ' ')))
  return [id, secret]
}
