/**
 * The schemas of all routes: plain JSON Schema, typed by TypeBox's `Static`, so that handlers are typed by what is checked and
 * no schema library is loaded when an application starts. @fastify/swagger documents the routes from them.
 */
import type { Static } from 'typebox'
import type { FastifyTypeProvider } from 'fastify'
import { type AuthErrorCode, ERRORS } from '../errors.js'
import { openapiComponents } from './openapi.js'

/** Types handlers by the schemas below. */
export interface SchemaTypes extends FastifyTypeProvider {
  validator: Static<this['schema'] & object>
  serializer: unknown
}

const FORM_OR_JSON = ['application/x-www-form-urlencoded', 'application/json']
const tags = ['auth']

const RETRY_AFTER = { 'Retry-After': { type: 'integer', description: 'Seconds, with `rate_limited` and `busy`' } } as const

/** What a request must carry. Nothing is said, too: the document may ask for something everywhere else. */
const NOTHING = [] as const
const SESSION = [{ session: [] }] as const
const SESSION_OR_NOTHING = [{}, { session: [] }] as const

const next = { type: 'string', maxLength: 8192, description: 'Where to go afterwards: a path of this application, anything else is ignored' } as const
const email = { type: 'string', maxLength: 65_536, description: 'At most 254 characters when it is trimmed' } as const
const link = { type: 'string', enum: ['true', 'false'], description: '`true`: adds the identity to the account of the signed-in user; from pages of this application only' } as const
const signed = { type: 'string', maxLength: 8192, description: 'What the application asks of the provider, as `app.auth.signInUrl` signed it' } as const
const errorNext = { type: 'string', maxLength: 8192, description: 'Where to go on failure, with `?error=<code>`: a path of this application, anything else is ignored' } as const

const { AuthError: error, Principal: principal } = openapiComponents.schemas

const signedIn = { ...principal, headers: { 'Set-Cookie': { type: 'string', description: 'The cookie of the session' } } } as const

const redirect = {
  type: 'null',
  description: 'A redirect: to `next`, or on failure to a page of this application, with `?error=<code>`',
  headers: { Location: { type: 'string', format: 'uri-reference' } }
} as const

/** Further fields of the application's form, for its hook `onSignIn`. A body waits in memory for the turn of its password, so all of it is bounded. */
const ownFields = {
  description: 'At most 32 fields, with names of at most 256 characters',
  maxProperties: 32,
  propertyNames: { maxLength: 256 },
  additionalProperties: { type: ['string', 'number', 'boolean', 'null'], maxLength: 4096, description: 'Fields of the application' }
} as const

const noContent = { type: 'null', description: 'Done' } as const

export const externalLogin = (provider: string) => ({
  tags,
  summary: `Start a sign-in at ${provider}`,
  operationId: operationId('login', provider),
  security: SESSION_OR_NOTHING,
  querystring: { type: 'object', properties: { next, error_next: errorNext, link, signed } },
  response: {
    302: redirect,
    ...refusals('invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'rate_limited', 'provider_error', 'provider_unavailable', 'unavailable')
  }
}) as const

export const externalCallback = (provider: string) => ({
  tags,
  summary: `Finish a sign-in at ${provider}`,
  description: 'The redirect URI of the provider; its query is the authorization response (RFC 6749 section 4.1.2).',
  operationId: operationId('callback', provider),
  security: SESSION,
  querystring: {
    type: 'object',
    properties: { code: {}, state: {}, iss: {}, error: {} }
  },
  response: {
    302: redirect,
    ...refusals('invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'access_denied', 'account_exists', 'already_linked', 'rate_limited', 'provider_error', 'provider_unavailable', 'unavailable')
  }
}) as const

/** @fastify/swagger leaves such a route out. */
export const undocumented = { hide: true, response: { '4xx': error } } as const

export const registerUser = {
  tags,
  summary: 'Register with e-mail and password, and sign in',
  operationId: 'authLocalRegister',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: {
      email,
      password: { type: 'string', description: '8 to 1024 bytes' },
      name: { type: 'string', maxLength: 1000, description: 'A display name' },
      role: { type: 'string', maxLength: 1000, description: 'An initial claim, if the application hands it out' },
      email_verified: { anyOf: [{ type: 'boolean' }, { type: 'string', maxLength: 1000 }], description: 'A checkbox: an initial claim, if the application hands it out' },
      next,
      error_next: errorNext
    },
    ...ownFields
  },
  response: {
    201: signedIn,
    303: redirect,
    ...refusals('invalid_request', 'invalid_email', 'weak_password', 'invalid_state', 'unauthenticated', 'cross_origin', 'claim_not_allowed', 'exists', 'rate_limited', 'busy', 'unavailable')
  }
} as const

export const loginUser = {
  tags,
  summary: 'Sign in with e-mail and password',
  operationId: 'authLocalLogin',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: { email, password: { type: 'string' }, next, error_next: errorNext },
    ...ownFields
  },
  response: {
    200: signedIn,
    303: redirect,
    ...refusals('invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'rate_limited', 'busy', 'unavailable')
  }
} as const

export const issueToken = {
  tags,
  summary: 'Issue a short-lived token for the signed-in user',
  operationId: 'authLocalToken',
  security: SESSION,
  response: {
    200: {
      type: 'object',
      description: 'A Bearer token (RFC 6750)',
      required: ['token', 'token_type', 'expires_in'],
      properties: {
        token: { type: 'string' },
        token_type: { type: 'string', enum: ['Bearer'] },
        expires_in: { type: 'integer', description: 'Seconds' }
      }
    },
    ...refusals('invalid_request', 'invalid_claims', 'unauthenticated', 'cross_origin', 'unavailable')
  }
} as const

export const verifyToken = {
  tags,
  summary: 'Verify a token and decode its claims',
  operationId: 'authLocalVerifyToken',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: { type: 'object', required: ['token'], properties: { token: { type: 'string' } } },
  response: {
    200: { type: 'object', description: 'The decoded claims', additionalProperties: true },
    ...refusals('invalid_request', 'invalid_token', 'cross_origin', 'unavailable')
  }
} as const

export const publicKeys = {
  tags,
  summary: 'The public keys that verify tokens',
  description: 'A JWK Set (RFC 7517 section 5), for a `TokenVerifier` or any other library.',
  operationId: 'authLocalJwks',
  security: NOTHING,
  response: {
    200: {
      type: 'object',
      description: 'The public keys',
      required: ['keys'],
      properties: {
        keys: {
          type: 'array',
          items: {
            type: 'object',
            required: ['kty', 'crv', 'x', 'alg', 'use', 'kid'],
            properties: Object.fromEntries(['kty', 'crv', 'x', 'y', 'alg', 'use', 'kid'].map(name => [name, { type: 'string' }]))
          }
        }
      },
      headers: { 'Cache-Control': { type: 'string', description: 'Keys may be kept for five minutes' } }
    },
    ...refusals('unavailable')
  }
} as const

const endOfSession = {
  tags,
  summary: 'Sign out',
  security: SESSION_OR_NOTHING,
  consumes: FORM_OR_JSON,
  body: { type: 'object', properties: { next, error_next: errorNext } },
  response: {
    204: noContent,
    303: redirect,
    ...refusals('invalid_request', 'cross_origin', 'unavailable')
  }
} as const

export const signOut = { ...endOfSession, operationId: 'authLogout' } as const

export const revokeSession = { ...endOfSession, operationId: 'authLocalRevoke' } as const

/** The answers that say no, by status, with the codes that each may carry and their sentences. */
function refusals (...codes: readonly AuthErrorCode[]) {
  const statuses = new Set(codes.map(code => ERRORS[code][0]))
  return {
    ...Object.fromEntries(Array.from(statuses, status => [status, refusal(codes.filter(code => ERRORS[code][0] === status))])),
    '4xx': { ...error, description: 'Another refusal, such as that of a body that is too large' },
    '5xx': { ...error, description: 'Another failure' }
  }
}

function refusal (codes: readonly AuthErrorCode[]) {
  const description = codes.map(code => `\`${code}\`: ${ERRORS[code][1]}`).join('\n\n')
  const saysWhen = codes.some(code => code === 'rate_limited' || code === 'busy')
  return { ...error, description, ...(saysWhen && { headers: RETRY_AFTER }) }
}

function operationId (action: string, provider: string): string {
  const name = provider.split('-').map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return `auth${name}${action.charAt(0).toUpperCase()}${action.slice(1)}`
}
