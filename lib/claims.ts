import { AuthError } from './errors.js'

/** What JSON can say. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

/** Who somebody is, according to the provider; refreshed at every sign-in (OpenID Connect Core 5.1). */
export interface IdentityClaims {
  /** The provider's identifier of the person, 1 to 255 characters; for `local` the user id. */
  sub: string
  /** As the provider writes it; for `local` in the canonical form. Not always verified. */
  email?: string
  /** What the provider says, or the registration form where {@link RegistrationPolicy} lets it. Accounts are linked on {@link Identity.emailVerified}, never on this. */
  email_verified?: boolean
  /** The full name, in the form in which the person is called. */
  name?: string
  /** The URL of a picture of the person. */
  picture?: string
  [claim: string]: JsonValue | undefined
}

/**
 * What somebody may do, according to this application; kept in the store and changed by `grant` and `withdraw`.
 *
 * @example
 * ```ts
 * declare module 'fastify-svc-auth' {
 *   interface AuthorizationClaims { role?: 'admin' | 'member' }
 * }
 * ```
 */
export interface AuthorizationClaims {
  [claim: string]: JsonValue | undefined
}

/** The claims of a principal: identity claims with the authorization claims over them. */
export type Claims = IdentityClaims & AuthorizationClaims

/** Claims that belong to the provider and can never be granted. */
const IDENTITY_CLAIMS = ['sub', 'email', 'email_verified', 'name', 'picture'] as const
const IDENTITY_CLAIM_NAMES: ReadonlySet<string> = new Set(IDENTITY_CLAIMS)

/** The names that an interface spells out, without those of its index signature. */
type SpeltOut<T> = keyof { [C in keyof T as string extends C ? never : number extends C ? never : C]: never }

/** Any name while the application declares no claims; then those that are spelt out, so that a misspelt name does not compile. */
export type CheckedName<C> = [SpeltOut<AuthorizationClaims>] extends [never] ? C : C extends SpeltOut<Claims> ? C : never

/** The names of authorization claims: those that the application declares, any while it declares none. */
export type AuthorizationClaimName = keyof { [C in keyof AuthorizationClaims as CheckedName<C>]: never } & string

/**
 * What `grant` takes: claims of the application, and none that belong to the provider (`sub`, `email`, `email_verified`, `name`, `picture`).
 * Once the application declares claims, no others.
 */
export type GrantableClaims = { [C in keyof AuthorizationClaims as CheckedName<C>]: AuthorizationClaims[C] } & { readonly [C in typeof IDENTITY_CLAIMS[number]]?: never }

/** Names that would reach an object's prototype when copied carelessly. */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

const MAX_DEPTH = 32

/**
 * Checks claims that the application wants to grant: a plain JSON object without identity claims.
 *
 * @returns a copy that shares nothing with what was passed in
 * @throws AuthError `invalid_claims`, naming the claim
 */
export function authorizationClaims (claims: unknown): AuthorizationClaims {
  const copy = plainJsonObject(claims)
  for (const name of Object.keys(copy)) {
    if (IDENTITY_CLAIM_NAMES.has(name)) {
      throw invalidClaims(`"${name}" is an identity claim and belongs to the provider; grant a claim of another name`)
    }
  }
  return copy
}

/**
 * Checks that claims are plain JSON data: no functions, dates, bigints, `NaN`, cycles or names that reach a prototype.
 *
 * @returns a deep copy
 * @throws AuthError `invalid_claims`, naming the claim
 */
export function plainJsonObject (value: unknown): Record<string, JsonValue> {
  if (!isPlainObject(value)) throw invalidClaims('claims must be a plain object')
  return copyObject(value, 'claims', 0)
}

/** The plain JSON data in something foreign; whatever is not JSON, or reaches a prototype, is left out. */
export function jsonDataOf (value: Record<string, unknown>): Record<string, JsonValue> {
  const data: Record<string, JsonValue> = {}
  for (const [name, member] of Object.entries(value)) {
    if (PROTOTYPE_NAMES.has(name) || !isStorable(name)) continue
    try {
      data[name] = copyJson(member, name, 0)
    } catch {
      // One odd claim of a provider is no reason to turn its user away.
    }
  }
  return data
}

/** Identity claims with the authorization claims over them. */
export function mergeClaims (identity: IdentityClaims, authorization: AuthorizationClaims): Claims {
  return { ...identity, ...authorization }
}

/** `email_verified` as providers send it: JSON `true`, or the string `"true"` of Amazon Cognito and others. Nothing else counts. */
export function isVerified (value: unknown): boolean {
  return value === true || value === 'true'
}

export function isPlainObject (value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** A string that says something and that every store can keep. */
export function isText (value: unknown): value is string {
  return typeof value === 'string' && value !== '' && isStorable(value)
}

/** Whether every store can keep a text: Postgres takes neither NUL nor half a surrogate pair. */
export function isStorable (text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

function copyJson (value: unknown, path: string, depth: number): JsonValue {
  if (typeof value === 'string') {
    if (!isStorable(value)) throw invalidClaims(`${path} holds a NUL character or half a surrogate pair`)
    return value
  }
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (depth >= MAX_DEPTH) throw invalidClaims(`${path} is nested deeper than ${MAX_DEPTH} levels or contains itself`)
  if (Array.isArray(value)) return Array.from(value, (item, index) => copyJson(item, `${path}[${index}]`, depth + 1))
  if (isPlainObject(value)) return copyObject(value, path, depth + 1)
  throw invalidClaims(`${path} is not JSON: a string, a finite number, a boolean, null, an array or a plain object is expected`)
}

function copyObject (value: Record<string, unknown>, path: string, depth: number): Record<string, JsonValue> {
  const copy: Record<string, JsonValue> = {}
  for (const [name, member] of Object.entries(value)) {
    copyJson(name, `a name in ${path}`, depth)
    if (PROTOTYPE_NAMES.has(name)) throw invalidClaims(`"${name}" cannot be the name of a claim`)
    copy[name] = copyJson(member, `${path}.${name}`, depth)
  }
  return copy
}

function invalidClaims (problem: string): AuthError {
  return new AuthError('invalid_claims', { message: `${problem}.` })
}
