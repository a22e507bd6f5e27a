import { Signer } from '@fastify/cookie'
import type { FastifyRequest, RawServerBase, RouteGenericInterface } from 'fastify'
import { isText } from '../../claims.js'
import { AuthError, OptionsError } from '../../errors.js'
import { type ChecksOf, boolean, checkedOptions, listOf, mustBe, optional, wholeNumber } from '../../option-checks.js'
import type { SignInParameters } from '../../providers/provider.js'
import { derivedKey, secretsOf, settingsIn } from '../../secrets.js'

declare module '../../core/context.js' {
  interface AuthContext {
    readonly signedRequests: SignedRequests
  }
}

type UrlParameters = { [Name in keyof SignInParameters]: SignInParameters[Name] | undefined }

/**
 * What `app.auth.signInUrl` signs; `linkFor`: the session whose user is asked for consent;
 * `isTest`: whether it is the test of a connection, which signs nobody in.
 */
export type SignedRequest = SignInParameters & { linkFor?: string, isTest?: boolean }

/** The options of `app.auth.signInUrl`. */
export interface SignInUrlOptions extends UrlParameters {
  /**
   * Whether the signed-in user stays the user: they give consent with an identity of theirs, or
   * link one, and `onLink` gets the tokens. Default false: the user who comes back is signed in.
   */
  link?: boolean | undefined
  /** With `link`: the request of the user who is asked, in whose session alone the path is good. */
  request?: FastifyRequest<RouteGenericInterface, RawServerBase> | undefined
  /** The page after the sign-in: a path of the application. */
  next?: string | undefined
}

const LIFETIME_MS = 10 * 60 * 1000
const MAX_HINT = 1000

/** Matches a scope-token of RFC 6749 section 3.3; values of `prompt` have the same form. */
const TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/

const OPTIONS = {
  next: optional(mustBe('a path of this application', value => typeof value === 'string')),
  loginHint: optional(mustBe('a string', value => typeof value === 'string'), ''),
  prompt: optional(mustBe('a value such as select_account, or several separated by blanks', arePrompts)),
  maxAge: optional(wholeNumber(0, Infinity, 'seconds')),
  scopes: optional(listOf('a list of scopes without blanks', isToken)),
  acrValues: optional(mustBe('a list of one or more values without blanks', areTokens)),
  link: optional(boolean, false),
  request: optional(mustBe('the request of the signed-in user, with link: true', isRequest))
} satisfies ChecksOf<SignInUrlOptions>

/**
 * Signs parameters of an authorization request for ten minutes, so that only the application can
 * set them. The key is derived from the secret of the session, which all processes share.
 */
export class SignedRequests {
  readonly #signer: Signer | null

  /** @param secret the option `session.secret`; if it is not a list: SVC_SESSION_SECRET, if set */
  constructor (secret: unknown) {
    const given: unknown[] = Array.isArray(secret) ? secret : settingsIn('SVC_SESSION_SECRET')
    const keyOf = (secret: string): Buffer => derivedKey(secret, 'fastify-svc-auth sign-in request')
    this.#signer = given.length === 0
      ? null
      : new Signer(secretsOf(given, 'the secret of signInUrl', 'SVC_SESSION_SECRET').map(keyOf))
  }

  sign (provider: string, asked: SignedRequest): string {
    if (this.#signer === null) {
      throw new OptionsError('signInUrl has no secret to sign with; ' +
        'set SVC_SESSION_SECRET, for example to the output of: openssl rand -hex 32')
    }
    const content = JSON.stringify({ ...asked, provider, expires: Date.now() + LIFETIME_MS })
    return this.#signer.sign(Buffer.from(content).toString('base64url'))
  }

  /** Throws `invalid_state` for a wrong signature, another provider, or after ten minutes. */
  verify (provider: string, signed: string): SignedRequest {
    const { valid, value } = this.#signer?.unsign(signed) ?? { valid: false, value: null }
    if (!valid || value === null) throw new AuthError('invalid_state')
    const { provider: askedProvider, expires, ...asked } = JSON.parse(Buffer.from(value, 'base64url').toString())
    if (askedProvider !== provider || expires < Date.now()) throw new AuthError('invalid_state')
    return asked
  }
}

/** Checks the options of `signInUrl` and returns what is signed, and for whose request. */
export function signedRequestOf (options: SignInUrlOptions): {
  asked: SignInParameters, linkFor: SignInUrlOptions['request']
} {
  const { next: _, loginHint, link, request, ...asked } =
    checkedOptions('signInUrl', options, OPTIONS, '{ loginHint }, after the name of a provider')
  if (link !== (request !== undefined)) {
    throw new OptionsError('signInUrl takes link: true and request together: the path is good for that user alone')
  }
  const isHint = isText(loginHint) && loginHint.length <= MAX_HINT
  return { asked: { ...asked, ...(isHint && { loginHint }) }, linkFor: request }
}

function isRequest (value: unknown): value is NonNullable<SignInUrlOptions['request']> {
  return typeof value === 'object' && value !== null && 'session' in value
}

function arePrompts (value: unknown): value is string {
  return typeof value === 'string' && value.split(' ').every(isToken)
}

function areTokens (value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isToken)
}

function isToken (value: unknown): value is string {
  return typeof value === 'string' && TOKEN.test(value)
}
