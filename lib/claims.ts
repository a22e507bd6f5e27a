import { AuthError } from './errors.js'

/** A value that JSON can represent. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

/** Who the user is according to the provider, as of the last sign-in (OpenID Connect Core 5.1). */
export interface IdentityClaims {
  /** The provider's identifier of the user, 1 to 255 characters; the user id without a provider. */
  sub: string
  /** The e-mail as the provider writes it, for `local` in canonical form; not always verified. */
  email?: string
  /**
   * Set by the provider; for `local`, when the user confirms the e-mail, or by the registration
   * form where its option allows that. No account is linked on this claim: see
   * {@link Identity.emailVerified}.
   */
  email_verified?: boolean
  /** The full name for display. */
  name?: string
  /** The https: URL of a picture of the user. */
  picture?: string
  [claim: string]: JsonValue | undefined
}

/**
 * What a user may do in this application, as the store keeps it; `grant` and `withdraw` change it.
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

/** Claims that belong to the provider and cannot be granted. */
const IDENTITY_CLAIMS = ['sub', 'email', 'email_verified', 'name', 'picture'] as const

/** The declared names, without the index signature. */
type SpeltOut<T> = keyof { [C in keyof T as string extends C ? never : number extends C ? never : C]: never }

/** Any name, or only those of claims that the application declares: misspelt, none compiles. */
export type CheckedName<C> =
  [SpeltOut<AuthorizationClaims>] extends [never] ? C : C extends SpeltOut<Claims> ? C : never

/** The authorization claims that the application declares, or any if it declares none. */
export type AuthorizationClaimName = keyof { [C in keyof AuthorizationClaims as CheckedName<C>]: never } & string

/** The claims that `grant` takes: no identity claims, and only declared ones if there are any. */
export type GrantableClaims =
  { [C in keyof AuthorizationClaims as CheckedName<C>]: AuthorizationClaims[C] } &
  { readonly [C in typeof IDENTITY_CLAIMS[number]]?: never }

/** Assigning these reaches the prototype of an object (prototype pollution). */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

const MAX_DEPTH = 32

/** Copies claims to be granted; refuses what is not plain JSON, and identity claims. */
export function authorizationClaims (claims: unknown): AuthorizationClaims {
  const copy = plainJsonObject(claims)
  for (const name of Object.keys(copy)) {
    if (IDENTITY_CLAIMS.some(claim => claim === name)) {
      throw invalidClaims(`"${name}" is an identity claim and belongs to the provider; grant a claim of another name`)
    }
  }
  return copy
}

/**
 * Copies claims deeply if they are plain JSON: no functions, dates, bigints, `NaN`, cycles or names
 * that reach a prototype.
 *
 * @throws AuthError `invalid_claims`, naming the claim
 */
export function plainJsonObject (value: unknown): Record<string, JsonValue> {
  if (!isPlainObject(value)) throw invalidClaims('claims must be a plain object')
  return copyObject(value, 'claims', 0)
}

/** Copies the plain JSON data of a provider's response, and leaves out the rest. */
export function jsonDataOf (value: Record<string, unknown>): Record<string, JsonValue> {
  const data: Record<string, JsonValue> = {}
  for (const [name, member] of Object.entries(value)) {
    if (PROTOTYPE_NAMES.has(name) || !isStorable(name)) continue
    try {
      data[name] = copyJson(member, name, 0)
    } catch {
      // One invalid claim of a provider must not prevent the sign-in.
    }
  }
  return data
}

export function mergeClaims (identity: IdentityClaims, authorization: AuthorizationClaims): Claims {
  return { ...identity, ...authorization }
}

/** Whether `email_verified` is `true`, or the text `"true"` that Amazon Cognito and others send. */
export function isVerified (value: unknown): boolean {
  return value === true || value === 'true'
}

export function isPlainObject (value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Whether a value is a non-empty string that every store can keep. */
export function isText (value: unknown): value is string {
  return typeof value === 'string' && value !== '' && isStorable(value)
}

/** Line breaks, other control characters, and characters that change the direction of text. */
const NOT_IN_NAMES = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

const VISIBLE = /[^\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}]/u

/**
 * A name as it may be shown: a line break could add a header to a mail, a direction make other text
 * of a page say something else. Empty for one that nobody would see.
 */
export function displayName (name: string): string {
  return VISIBLE.test(name) ? name.replace(NOT_IN_NAMES, '') : ''
}

/** The name in a form, as it may be shown; null for an empty one. Refuses what no store keeps. */
export function checkedName (name: string): string | null {
  if (!isStorable(name)) {
    throw new AuthError('invalid_request', { message: 'The name holds characters that cannot be stored.' })
  }
  const shown = displayName(name).trim()
  return shown === '' ? null : shown
}

/** Whether every store can keep it: Postgres accepts neither NUL nor half a surrogate pair. */
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
  throw invalidClaims(
    `${path} is not JSON: a string, a finite number, a boolean, null, an array or a plain object is expected`
  )
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
