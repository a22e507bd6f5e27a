/** What the commands of API keys ask. */
import type { AuditSource } from '../audit.js'
import { DAY_MS } from '../base/values.js'
import type { SqlAuthStore } from '../engines/sql.js'
import { OptionsError } from '../errors.js'
import { ApiKeys } from '../features/api-keys/api-keys.js'
import { Keys } from '../features/api-keys/keys.js'
import {
  type ApiKey, type CreatedKey, type KeyOwner, createKey, endKey, listKeys
} from '../features/api-keys/made-keys.js'
import type { GivenOptions } from '../options.js'
import type { ParsedOptions } from './options.js'

export async function makeKey (
  store: SqlAuthStore, owner: KeyOwner, values: ParsedOptions,
  { options, source }: { options: GivenOptions | null, source: AuditSource }
): Promise<CreatedKey> {
  const { name = '', scope: scopes = [], 'expires-in': days } = values
  if (days !== undefined && !/^[1-9]\d{0,4}$/.test(days)) throw new OptionsError('--expires-in must be a count of days')
  const part = apiKeysOf(values, options).resolve(store)
  const expiresAt = days === undefined ? undefined : new Date(Date.now() + Number(days) * DAY_MS)
  return createKey(part, { ...owner, name, scopes, expiresAt }, { source, maker: null })
}

export async function keysOf (store: SqlAuthStore, owner: KeyOwner): Promise<ApiKey[]> {
  return listKeys({ keys: new Keys(store.featureTables) }, owner)
}

export async function removeKey (store: SqlAuthStore, id: string, source: AuditSource): Promise<boolean> {
  return endKey({ keys: new Keys(store.featureTables) }, id, source)
}

/** Without the application, the scopes are taken as they are given. */
function apiKeysOf ({ scope = [], 'key-prefix': prefix }: ParsedOptions, options: GivenOptions | null): ApiKeys {
  if (options?.apiKeys instanceof ApiKeys) return options.apiKeys
  if (prefix !== undefined) return new ApiKeys({ prefix, scopes: Object.fromEntries(scope.map(name => [name, name])) })
  throw new OptionsError('api-key create needs --app with the option apiKeys, or its prefix as --key-prefix')
}
