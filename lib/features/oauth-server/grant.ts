/** The rules of a grant: pure functions, of which each returns the grant as it is to be written. */
import { createHash, randomBytes } from 'node:crypto'
import { DAY_MS } from '../../base/values.js'
import type { GrantContent, GrantToken } from '../../schema/grants.js'
import { isEqual } from '../../secrets.js'
import { PREFIXES } from './prefixes.js'

/** What a user has allowed a client: a row of `svc_auth_grants`. Times are in milliseconds. */
export interface Grant {
  readonly grantId: string
  readonly userId: string
  /** The user's generation at the consent: a grant ends with it. */
  readonly generation: number
  readonly clientId: string
  readonly content: GrantContent
  readonly version: number
  readonly createdAt: number
  /** The last use, to an hour. */
  readonly usedAt: number
  readonly endsAt: number
}

/** How long what a grant gives lives, in milliseconds. */
export interface Lifetimes {
  readonly access: number
  /** Of a refresh token that is not used; each use makes one with this time. */
  readonly refresh: number
  /** Of the grant, from the consent. */
  readonly grant: number
}

export const LIFETIMES: Lifetimes = { access: 10 * 60 * 1000, refresh: 30 * DAY_MS, grant: 365 * DAY_MS }

/** The time to redeem a code: RFC 6749 section 4.1.2 has ten minutes at most. */
export const CODE_MS = 60_000

/** For so long, and for so many successors, a refresh token that was used is good. */
const GRACE_MS = 10 * 60 * 1000
const MAX_SUCCESSORS = 10

/** How many refresh tokens of a grant are good, how many dead ones it knows, and access tokens. */
const MAX_REFRESH = 10
const MAX_DEAD = 10
const MAX_ACCESS = 20

type TokenKind = GrantToken['kind']

/** The text of a token: its kind, its grant, and a secret of 256 bits. */
const TOKEN = /^([a-z]{3}_)([\w-]{24})([\w-]{43})$/

export interface PresentedToken {
  readonly kind: TokenKind
  readonly grantId: string
  readonly hash: string
}

/** Reads a token that a client presents; null for a text that is none. */
export function presentedToken (text: unknown): PresentedToken | null {
  const [, prefix, grantId, secret] = typeof text === 'string' ? TOKEN.exec(text) ?? [] : []
  const kind = (['access', 'refresh'] as const).find(kind => PREFIXES[kind] === prefix)
  if (kind === undefined || grantId === undefined || secret === undefined) return null
  return { kind, grantId, hash: hashOf(secret) }
}

/** Returns the SHA-256 of a secret, as base64url. */
export function hashOf (text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** What a client asks for with a code or a refresh token. */
export interface TokenRequest {
  /** Undefined for the one of the grant (RFC 8707 section 2.2). */
  readonly resource?: string | undefined
  /** Undefined for all of the grant; others are left out. */
  readonly scope?: string | undefined
}

/** What a client is given: RFC 6749 section 5.1. */
export interface IssuedTokens {
  readonly access: string
  readonly refresh: string
  /** Seconds. */
  readonly expiresIn: number
  readonly scopes: readonly string[]
}

export interface Issued {
  readonly grant: Grant
  readonly tokens: IssuedTokens
}

/** How tokens are issued. */
export interface Issuing extends TokenRequest {
  readonly lifetimes: Lifetimes
  readonly now: number
}

/** Issues the first tokens of a grant, or further ones, by a refresh token: `of`. */
function issued (grant: Grant, { lifetimes, now, scope }: Issuing, of?: string): Issued {
  const [access, refresh] = [newSecret(), newSecret()]
  const narrowed = grant.content.scopes.filter(name => scope?.split(' ').includes(name))
  const scopes = narrowed.length > 0 ? narrowed : grant.content.scopes
  const until = (lifetime: number): number => Math.min(now + lifetime, grant.endsAt)
  const used = grant.content.tokens.filter(({ hash }) => hash === of)
  // In the order of their last use, so that the one unused longest is the first.
  const tokens: GrantToken[] = [
    ...grant.content.tokens.filter(token => !used.includes(token)),
    ...used.map(token => ({ ...token, usedAt: token.usedAt ?? now })),
    { kind: 'refresh', hash: hashOf(refresh), expiresAt: until(lifetimes.refresh), ...(of !== undefined && { of }) },
    {
      kind: 'access',
      hash: hashOf(access),
      expiresAt: until(lifetimes.access),
      issuedAt: now,
      ...(scopes.length < grant.content.scopes.length && { scopes })
    }
  ]
  return {
    grant: { ...grant, usedAt: now, content: { ...grant.content, tokens: kept(tokens, now) } },
    tokens: {
      access: PREFIXES.access + grant.grantId + access,
      refresh: PREFIXES.refresh + grant.grantId + refresh,
      expiresIn: Math.floor((until(lifetimes.access) - now) / 1000),
      scopes
    }
  }
}

/** The first tokens of a grant, whose life begins with them. */
export function firstTokens (grant: Grant, how: Issuing): Issued | 'expired' | 'other-resource' {
  // One code of a grant is redeemed: a consent that was clicked twice has made two.
  if (grant.content.tokens.length > 0 || grant.endsAt <= how.now) return 'expired'
  if (!isFor(grant, how)) return 'other-resource'
  return issued({ ...grant, endsAt: grant.createdAt + how.lifetimes.grant }, how)
}

function isFor ({ content }: Grant, { resource = content.resource }: TokenRequest): boolean {
  return resource === content.resource
}

/**
 * Rotates a refresh token. One that was used stays good while none of its successors was: several
 * windows of a client share one, and an answer may be lost. `replayed`: a token of this grant that
 * is good no longer, so that another client may have a copy of it; `expired`: nobody used it.
 *
 * @see RFC 9700 section 4.14.2
 */
export function refreshed (
  grant: Grant, { hash }: PresentedToken, how: Issuing
): Issued | 'expired' | 'replayed' | 'other-resource' {
  const { now } = how
  const { content: { tokens } } = grant
  const token = tokens.find(token => isEqual(token.hash, hash))
  if (grant.endsAt <= now || (token !== undefined && token.expiresAt <= now)) return 'expired'
  if (token === undefined || !isGood(token, tokens, now)) return 'replayed'
  return isFor(grant, how) ? issued(grant, how, token.hash) : 'other-resource'
}

/** Whether a refresh token may be used. */
function isGood (token: GrantToken, tokens: readonly GrantToken[], now: number): boolean {
  if (token.kind !== 'refresh' || token.expiresAt <= now) return false
  if (token.usedAt === undefined) return true
  const successors = tokens.filter(({ of }) => of === token.hash)
  return token.usedAt > now - GRACE_MS && successors.length < MAX_SUCCESSORS &&
    successors.every(({ usedAt }) => usedAt === undefined)
}

/**
 * Leaves out what is over. Of more refresh tokens than may be good, those that were used go first,
 * but for the last one, whose answer may be lost: their clients have others. Then the one unused
 * longest goes.
 */
function kept (all: readonly GrantToken[], now: number): GrantToken[] {
  let tokens = [...all]
  const good = (): GrantToken[] => tokens.filter(token => isGood(token, tokens, now))
  for (let living = good(); living.length > MAX_REFRESH; living = good()) {
    const [first, ...others] = living.filter(({ usedAt }) => usedAt !== undefined)
    const oldest = others.length > 0 ? first : living.find(({ usedAt }) => usedAt === undefined)
    // It is known for a while as one that nobody has copied.
    tokens = tokens.map(token => token === oldest ? { ...token, expiresAt: now } : token)
  }
  const living = good()
  const dead = tokens.filter(({ kind, expiresAt }) => kind === 'refresh' && expiresAt <= now).slice(-MAX_DEAD)
  const access = tokens.filter(({ kind, expiresAt }) => kind === 'access' && expiresAt > now).slice(-MAX_ACCESS)
  return tokens.filter(token => living.includes(token) || dead.includes(token) || access.includes(token))
}

/** Returns the access token of a grant that a client presents; null where it is over. */
export function accessToken (
  { content: { tokens }, endsAt }: Grant, { kind: presented, hash }: PresentedToken, now: number
): GrantToken | null {
  const token = tokens.find(({ kind, hash: known }) => kind === 'access' && presented === kind && isEqual(known, hash))
  return token !== undefined && token.expiresAt > now && endsAt > now ? token : null
}

/** Removes an access token. */
export function withoutToken (grant: Grant, { hash }: PresentedToken): Grant {
  const tokens = grant.content.tokens.filter(token => token.hash !== hash)
  return { ...grant, content: { ...grant.content, tokens } }
}

function newSecret (): string {
  return randomBytes(32).toString('base64url')
}
