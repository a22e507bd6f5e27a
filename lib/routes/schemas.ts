/**
 * The schemas of all routes: plain JSON Schema, typed by TypeBox's `Static`, so that handlers are typed by what is checked and
 * no schema library is loaded when an application starts. @fastify/swagger documents the routes from them.
 */
import type { Static } from 'typebox'
import type { FastifyTypeProvider } from 'fastify'

/** Types handlers by the schemas below. */
export interface SchemaTypes extends FastifyTypeProvider {
  validator: Static<this['schema'] & object>
  serializer: unknown
}

const FORM_OR_JSON = ['application/x-www-form-urlencoded', 'application/json']
const tags = ['auth']

const next = { type: 'string', maxLength: 8192, description: 'Where to go afterwards: a path of this application, anything else is ignored' } as const
const email = { type: 'string', maxLength: 65_536, description: 'At most 254 characters when it is trimmed' } as const
const link = { type: 'string', enum: ['true', 'false'], description: 'true: adds the identity to the account of the signed-in user; from pages of this application only' } as const
const errorNext = { type: 'string', maxLength: 8192, description: 'Where to go on failure, with ?error=<code>: a path of this application, anything else is ignored' } as const

const error = {
  type: 'object',
  description: 'What went wrong',
  required: ['error', 'message'],
  properties: {
    error: { type: 'string', description: 'A stable code' },
    message: { type: 'string', description: 'A sentence for people' }
  }
} as const

const principal = {
  type: 'object',
  description: 'Who is signed in',
  required: ['userId', 'provider', 'claims'],
  properties: {
    userId: { type: 'string', format: 'uuid' },
    provider: { type: 'string' },
    claims: { type: 'object', additionalProperties: true }
  }
} as const

const redirect = {
  type: 'null',
  description: 'A redirect: to next, or on failure to the page that the request came from with ?error=<code>',
  headers: { Location: { type: 'string' } }
} as const

/** Further fields of the application's form, for its hook `onSignIn`. A body waits in memory for the turn of its password, so all of it is bounded. */
const ownFields = {
  maxProperties: 32,
  propertyNames: { maxLength: 256 },
  additionalProperties: { type: ['string', 'number', 'boolean', 'null'], maxLength: 4096, description: 'Fields of the application' }
} as const

const noContent = { type: 'null', description: 'Done' } as const

export const externalLogin = (provider: string) => ({
  tags,
  summary: `Start a sign-in at ${provider}`,
  operationId: operationId('login', provider),
  querystring: { type: 'object', properties: { next, link } },
  response: { 302: redirect, '4xx': error, '5xx': error }
}) as const

export const externalCallback = (provider: string) => ({
  tags,
  summary: `Finish a sign-in at ${provider}`,
  description: 'The redirect URI of the provider; its query is the authorization response (RFC 6749 section 4.1.2).',
  operationId: operationId('callback', provider),
  querystring: {
    type: 'object',
    properties: { code: {}, state: {}, iss: {}, error: {} }
  },
  response: { 302: redirect, '4xx': error, '5xx': error }
}) as const

/** @fastify/swagger leaves such a route out. */
export const undocumented = { hide: true, response: { '4xx': error } } as const

export const registerUser = {
  tags,
  summary: 'Register with e-mail and password, and sign in',
  operationId: 'authLocalRegister',
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
  response: { 201: principal, 303: redirect, '4xx': error, '5xx': error }
} as const

export const loginUser = {
  tags,
  summary: 'Sign in with e-mail and password',
  operationId: 'authLocalLogin',
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: { email, password: { type: 'string' }, next, error_next: errorNext },
    ...ownFields
  },
  response: { 200: principal, 303: redirect, '4xx': error, '5xx': error }
} as const

export const issueToken = {
  tags,
  summary: 'Issue a short-lived token for the signed-in user',
  operationId: 'authLocalToken',
  response: {
    200: {
      type: 'object',
      description: 'A Bearer token (RFC 6750)',
      required: ['token', 'token_type', 'expires_in'],
      properties: {
        token: { type: 'string' },
        token_type: { const: 'Bearer' },
        expires_in: { type: 'integer', description: 'Seconds' }
      }
    },
    '4xx': error,
    '5xx': error
  }
} as const

export const verifyToken = {
  tags,
  summary: 'Verify a token and decode its claims',
  operationId: 'authLocalVerifyToken',
  consumes: ['application/json'],
  body: { type: 'object', required: ['token'], properties: { token: { type: 'string' } } },
  response: {
    200: { type: 'object', description: 'The decoded claims', additionalProperties: true },
    '4xx': error,
    '5xx': error
  }
} as const

export const revokeSession = {
  tags,
  summary: 'Sign out',
  operationId: 'authLocalRevoke',
  consumes: FORM_OR_JSON,
  body: { type: 'object', properties: { next, error_next: errorNext } },
  response: { 204: noContent, 303: redirect, '4xx': error, '5xx': error }
} as const

function operationId (action: string, provider: string): string {
  const name = provider.split('-').map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return `auth${name}${action.charAt(0).toUpperCase()}${action.slice(1)}`
}
