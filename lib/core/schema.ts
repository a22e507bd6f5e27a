/**
 * The parts that the schemas of several routes have in common. Schemas are plain JSON Schema, typed
 * by TypeBox's `Static`: handlers have the types of what is checked, and no schema library is
 * loaded at the start. @fastify/swagger documents the routes from them.
 */
import type { FastifyTypeProvider } from 'fastify'
import type { Static } from 'typebox'
import { type AuthErrorCode, ERRORS } from '../errors.js'
import { openapiComponents } from './openapi.js'

/** Types handlers by the schemas of their routes. */
export interface SchemaTypes extends FastifyTypeProvider {
  validator: Static<this['schema'] & object>
  serializer: unknown
}

const { AuthError: error, Principal: principal } = openapiComponents.schemas

export const FORM_OR_JSON = ['application/x-www-form-urlencoded', 'application/json']

/** The security requirements of routes; none is said too, because a document has a default. */
const SECURITY = {
  anyone: [],
  'signed-in-or-not': [{}, { session: [] }],
  'signed-in': [{ session: [] }]
} as const

/** Names an operation after its path: `authLocalChangePassword` for `/local/change-password`. */
export function operationIdOf (path: string): string {
  return `auth${path.split(/[^a-z0-9]+/i).map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('')}`
}

export const next = {
  type: 'string',
  maxLength: 8192,
  description: 'Where to go afterwards: a path of this application, anything else is ignored'
} as const

export const errorNext = {
  type: 'string',
  maxLength: 8192,
  description: 'Where to go on failure, with `?error=<code>`: a path of this application, anything else is ignored'
} as const

export const token = { type: 'string', maxLength: 16_384, description: 'The token in the link of a mail' } as const

/** A checkbox: forms send it as a text, JSON clients as true or false. */
export const checkbox = { anyOf: [{ type: 'boolean' }, { type: 'string', maxLength: 1000 }] } as const

export const remember = {
  ...checkbox,
  description: 'A checkbox: a session of `session.remember.days`, instead of one that ends with the browser or in a day'
} as const

/** An object with all of these members: JSON Schemas by name. */
export function objectOf (description: string, properties: Readonly<Record<string, object>>) {
  return { type: 'object', description, required: Object.keys(properties), properties }
}

export const signedIn = {
  ...principal,
  headers: { 'Set-Cookie': { type: 'string', description: 'The cookie of the session' } }
} as const

export const accepted = { type: 'null', description: 'Accepted: a mail follows if one is due' } as const

export const done = { type: 'null', description: 'Done' } as const

export const redirect = {
  type: 'null',
  description: 'A redirect: to `next`, or on failure to a page of this application, with `?error=<code>`',
  headers: { Location: { type: 'string', format: 'uri-reference' } }
} as const

/** What the document says of a route. */
export interface Operation {
  summary: string
  description?: string | undefined
  operationId: string
  /** Whether the request must be that of a signed-in user. */
  user: keyof typeof SECURITY
  answers: Readonly<Record<number, object>>
  refuses?: readonly AuthErrorCode[]
}

/** Makes the schema of a route, but for the parts of the request that it checks. */
export function operation ({ summary, description, operationId, user, answers, refuses = [] }: Operation) {
  return {
    tags: ['auth'],
    summary,
    ...(description !== undefined && { description }),
    operationId,
    security: SECURITY[user],
    response: { ...answers, ...refusals(refuses) }
  }
}

/** The schema of a route that @fastify/swagger leaves out of the document. */
export const undocumented = { hide: true, response: { '4xx': error } } as const

/** Describes the error responses of a route by status, with their codes and sentences. */
function refusals (codes: readonly AuthErrorCode[]) {
  const byStatus = Object.entries(Object.groupBy(codes, code => ERRORS[code][0]))
  return {
    ...Object.fromEntries(byStatus.map(([status, codes]) => [status, refusal(codes)])),
    '4xx': { ...error, description: 'Another refusal, such as that of a body that is too large' },
    '5xx': { ...error, description: 'Another failure' }
  }
}

function refusal (codes: readonly AuthErrorCode[]) {
  const description = codes.map(code => `\`${code}\`: ${ERRORS[code][1]}`).join('\n\n')
  const saysWhen = codes.some(code => code === 'rate_limited' || code === 'busy')
  const retryAfter = { type: 'integer', description: 'Seconds, with `rate_limited` and `busy`' }
  return { ...error, description, ...(saysWhen && { headers: { 'Retry-After': retryAfter } }) }
}

/** Whether a checkbox is checked: forms send `on` or a value of the page, and nothing otherwise. */
export function isChecked (field: unknown): boolean {
  return field === true || (typeof field === 'string' && !['', 'off', 'false', '0'].includes(field))
}

/** Returns a field of a form; undefined for an empty one, which forms send as an empty string. */
export function filledIn (field: string | undefined): string | undefined {
  return field === '' ? undefined : field
}
