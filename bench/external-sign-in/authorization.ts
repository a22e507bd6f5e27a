import { createHash } from 'node:crypto'

export const CLIENT = { id: 'the-app', secret: 'the-client-secret-of-the-benches' }

/** Where the applications believe to be; the browser goes to where they listen. */
export const BASE_URL = 'http://app.example'

export const REDIRECT_URI = `${BASE_URL}/callback`
export const SCOPES = ['openid', 'email', 'profile']

/** Somebody in the words of the provider. With an e-mail in the ID token nobody has to ask for userinfo who reads ID tokens. */
export function personOf (sub: string) {
  return { sub, email: `${sub}@example.com`, email_verified: true, name: 'Ada', picture: 'https://id.example/ada.png' }
}

/** What the token endpoint has to know of an authorization request. */
export interface Authorization {
  /** Who has agreed. */
  sub: string
  redirectUri: string
  challenge: string
  /** Null for clients that read no ID token. */
  nonce: string | null
}

/**
 * The authorization endpoint, and the person at it: agrees at once. It is played where the browser is, and takes no request, because
 * the time until somebody comes back is none of the application's; so a code carries what it stands for.
 *
 * @param sub the subject of who signs in
 * @returns path and query of the callback
 */
export function consent (authorizationUrl: string, sub: string): string {
  const { origin, pathname, searchParams: request } = new URL(authorizationUrl)
  const { client_id: id, response_type: type, code_challenge_method: method, code_challenge: challenge = '', redirect_uri: redirectUri = '', state = '', nonce = null } = Object.fromEntries(request)
  if (id !== CLIENT.id || type !== 'code' || method !== 'S256' || state === '') throw new Error(`this is no authorization request of ours: ${authorizationUrl}`)

  const callback = new URL(redirectUri)
  const issuer = origin + pathname.replace(/\/authorize$/, '')
  for (const [name, value] of Object.entries({ code: encoded({ sub, redirectUri, challenge, nonce }), state, iss: issuer })) callback.searchParams.set(name, value)
  return callback.pathname + callback.search
}

/** The authorization for which a code stands. */
export function authorizationOf (code: string): Authorization {
  return JSON.parse(Buffer.from(code, 'base64url').toString())
}

/** RFC 7636 section 4.2. */
export function challengeOf (verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

export function encoded (value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
