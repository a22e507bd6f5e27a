import { randomUUID } from 'node:crypto'
import type { IdentityClaims, JsonValue } from '../../claims.js'
import type { Accounts } from '../../accounts/accounts.js'
import type { LinkedIdentity, NewUser } from '../../accounts/identities.js'

export const HASH = '$argon2id$v=19$m=8,t=1,p=1$c29tZSBzYWx0IG9mIDE2$K5mS0pLqjFHdLB4wXH2zqmG6Gg6o7pRrPDd2IG5rHHQ'

export const ADA = {
  userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11',
  email: 'ada@example.com',
  emailVerified: true,
  name: 'Ada',
  claims: { role: 'admin' },
  link: {
    provider: 'dev',
    subject: 'ada-1',
    claims: { sub: 'ada-1', email: 'ada@example.com', email_verified: true, name: 'Ada' }
  }
} as const satisfies NewUser

export const UNKNOWN_USER = { name: 'AuthError', code: 'unknown_user', statusCode: 404 }
export const LAST_LINK = { name: 'AuthError', code: 'last_link', statusCode: 409 }
export const INVALID_REQUEST = { name: 'AuthError', code: 'invalid_request', statusCode: 400 }

export const BEFORE_NUL = 'before'
export const WITH_NUL = `${BEFORE_NUL}\0after`

/** Ids that no user has; Postgres would take some of them for Ada's. */
export const NO_USER_IDS = [
  '', ' ', '1', 'unknown', "' or ''='", '%', 'null', ADA.userId.toUpperCase(), ADA.userId.replaceAll('-', ''),
  `{${ADA.userId}}`, ` ${ADA.userId}`, `${ADA.userId}\n`, `${ADA.userId}\0`, ADA.userId.slice(0, -1), `${ADA.userId}0`
]

/**
 * The calls that note what a provider reports about a user: common tests run with each. ADA has a
 * link at `dev`.
 */
export const WAYS_TO_NOTE = [
  {
    way: 'a sign-in',
    note: (store: Accounts, news: Pick<LinkedIdentity, 'claims' | 'verifiedEmail'>) =>
      store.refreshIdentity({ provider: 'dev', subject: 'ada-1', ...news })
  },
  {
    way: 'a second link',
    note: async (store: Accounts, news: Pick<LinkedIdentity, 'claims' | 'verifiedEmail'>) => {
      return store.addLink(ADA.userId, { provider: 'other', subject: 'ada-of-other', ...news })
    }
  }
]

export const JSON_OF_EVERY_KIND: Record<string, JsonValue> = {
  string: 'text',
  empty_string: '',
  unicode: 'ünïcödé 日本語 \u202eright to left\u202c 👩‍💻 e\u0301 \u007f \ufffd',
  escapes: 'quote " backslash \\ newline \n tab \t control \u0001 separator \u2028',
  looks_like_json: '{"a":1}',
  looks_like_a_number: '1',
  true: true,
  false: false,
  null: null,
  zero: 0,
  negative: -1,
  fraction: 0.1,
  large: 1e21,
  small: 1e-7,
  safe: Number.MAX_SAFE_INTEGER,
  unsafe: 2 ** 63,
  largest: Number.MAX_VALUE,
  smallest: Number.MIN_VALUE,
  empty_list: [],
  empty_object: {},
  list: [1, 'two', [3, [null]], { four: 4 }],
  nested: { a: { b: { c: [{ d: 'e' }] } } },
  deep: Array.from({ length: 30 }).reduce<JsonValue>(inner => [inner], 'bottom')
}

export const ODD_TEXTS = [
  "'; drop table svc_auth_users; --",
  '" or ""="',
  '%',
  '\\',
  '$1 ? :name @name #{x} ${x}', // eslint-disable-line no-template-curly-in-string
  ' spaces around ',
  'line\r\nbreak\ttab\u0001',
  'e\u0301 é ﬁ \u202eabc 日本語 👩‍💻',
  'n'.repeat(254)
]

export function newUser (user: Partial<NewUser> = {}): NewUser {
  const userId = randomUUID()
  return {
    userId,
    email: null,
    emailVerified: false,
    name: 'A user',
    claims: {},
    link: link('dev', `subject of ${userId}`),
    ...user
  }
}

export function localUser (email: string): NewUser & { passwordHash: string } {
  return { ...newUser({ email, link: link('local', email, { email }) }), passwordHash: HASH }
}

export function link (provider: string, subject: string, claims: Omit<IdentityClaims, 'sub'> = {}): NewUser['link'] {
  return { provider, subject, claims: { sub: subject, ...claims } }
}

export function identity (provider: string, subject: string, news: Partial<LinkedIdentity> = {}): LinkedIdentity {
  return { ...link(provider, subject), verifiedEmail: null, ...news }
}

/** The report of a provider that vouches for an e-mail. */
export function verified (
  email: string,
  claims: Omit<IdentityClaims, 'sub'> = {}
): Pick<LinkedIdentity, 'claims' | 'verifiedEmail'> {
  return { claims: { sub: 'x', email, email_verified: true, ...claims }, verifiedEmail: email }
}

export function valuesOf<T> (results: Array<PromiseSettledResult<T>>): T[] {
  return results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
}

export function reasonsOf (results: Array<PromiseSettledResult<unknown>>): unknown[] {
  return results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
}

/** Changes all that can be changed in a value. */
export function vandalize (value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const member of Object.values(value)) vandalize(member)
  if (Array.isArray(value)) value.push('changed')
  else Object.assign(value, { name: 'changed', email: 'changed@example.com', userId: 'changed' })
}
