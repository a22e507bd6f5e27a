import { DAY_MS, brand } from '../../base/values.js'
import type { PartSetup } from '../../core/feature.js'
import { type ScopeText, scopeTexts } from '../../core/scopes.js'
import { OptionsError } from '../../errors.js'
import {
  type Checked, type ChecksOf, boolean, checkedOptions, mustBe, optional, wholeNumber
} from '../../option-checks.js'
import { PREFIXES } from '../oauth-server/prefixes.js'
import { Keys } from './keys.js'

/** Options of {@link ApiKeys}. */
export interface ApiKeysOptions {
  /** What each key begins with, before `_`: by it people and scanners of secrets know a key. */
  prefix: string
  /** What the scopes of keys allow, as users read it: `{ 'notes:read': 'Read your notes' }`. */
  scopes: Readonly<Record<string, ScopeText>>
  /** Whether users make and end their own keys; default false. */
  selfService?: boolean | undefined
  /** The days that a key lives at most; default no limit. */
  maxAge?: number | undefined
  /** Whether a page of a browser may send a key; default false. */
  browsers?: boolean | undefined
}

/** What the option became: a part of the context. */
export type KeysPart = ReturnType<ApiKeys['resolve']>

declare module '../../core/context.js' {
  interface Parts {
    readonly apiKeys: KeysPart | null
  }
}

/** The scope of resource servers, which ask what tokens allow: keys of users never have it. */
export const INTROSPECT = 'introspect'

/** The tokens of `oauthServer` begin with these: a header says by its prefix what it carries. */
const TAKEN = Object.values(PREFIXES)

const OPTIONS = {
  prefix: mustBe("2 to 20 characters of a to z, 0 to 9 and _ that begin with a letter, and not with 'sat', 'srt' or " +
    "'sac', such as 'shop'", (value): value is string => typeof value === 'string' &&
    /^[a-z][a-z0-9_]{1,19}$/.test(value) && !TAKEN.some(prefix => `${value}_`.startsWith(prefix))),
  scopes: scopeTexts,
  selfService: optional(boolean, false),
  maxAge: optional(wholeNumber(1, 36500, 'days'), null),
  browsers: optional(boolean, false)
} satisfies ChecksOf<ApiKeysOptions>

/**
 * API keys of users, of organizations and of jobs, for the option `apiKeys` of the plugin.
 *
 * @example
 * ```ts
 * import { ApiKeys } from 'fastify-svc-auth/api-keys'
 *
 * const apiKeys = new ApiKeys({ prefix: 'shop', scopes: { 'orders:read': 'Read your orders' } })
 * await app.register(authPlugin, { store, apiKeys })
 * const { key } = await app.auth.createKey(
 *   { owner: 'job:nightly', name: 'Nightly export', scopes: ['orders:read'] }, { actor: 'deploy' })
 * ```
 */
export class ApiKeys {
  static { brand(this, 'ApiKeys') }
  readonly #options: Checked<typeof OPTIONS>

  /** @throws OptionsError naming the option */
  constructor (options: ApiKeysOptions) {
    this.#options = checkedOptions('ApiKeys', options, OPTIONS, "{ prefix: 'shop', scopes }")
    if (Object.keys(this.#options.scopes).length === 0) throw new OptionsError('ApiKeys: scopes must have one at least')
  }

  /** @hidden for the plugin */
  resolve ({ featureTables }: Pick<PartSetup, 'featureTables'>) {
    if (featureTables === undefined) {
      throw new OptionsError('apiKeys needs a SqlAuthStore, whose database keeps the keys')
    }
    const { prefix, scopes, selfService, maxAge, browsers } = this.#options
    return Object.freeze({
      prefix,
      scopes: new Map(Object.entries(scopes)),
      selfService,
      /** In milliseconds; null for keys that may live for ever. */
      maxAge: maxAge === null ? null : maxAge * DAY_MS,
      browsers,
      keys: new Keys(featureTables),
      pages: {}
    })
  }
}
