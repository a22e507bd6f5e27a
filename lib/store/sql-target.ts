import { fileURLToPath } from 'node:url'
import type { Database } from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import type { Sql } from 'postgres'
import { OptionsError } from '../errors.js'
import { hasMethods } from '../option-checks.js'
import { postgresSettings } from './postgres-url.js'

export type SqliteDrizzle = BetterSQLite3Database & { $client: Database }

export type PostgresDrizzle = PgDatabase<PgQueryResultHKT>

export type SqliteTarget = { dialect: 'sqlite' } & ({ file: string } | { connection: Database } | { db: SqliteDrizzle })

export type PostgresEngine = { dialect: 'postgres' } & ({ client: Sql } | { db: PostgresDrizzle })

type SqlTarget = SqliteTarget | PostgresEngine | { dialect: 'postgres', url: string }

const EXPECTED = 'an SQLite file, a sqlite:, file: or postgres: URL, :memory:, or an existing engine'

/**
 * Determines which database a target names; opens nothing. Errors do not print it: it may hold a
 * password.
 */
export function sqlTarget (target: unknown): SqlTarget {
  if (typeof target === 'string') return namedTarget(target)
  if (isSqliteConnection(target)) return { dialect: 'sqlite', connection: target }
  if (isDrizzleSqlite(target)) return { dialect: 'sqlite', db: target }
  if (isDrizzlePostgres(target)) return { dialect: 'postgres', db: target }
  if (isPostgresClient(target)) return { dialect: 'postgres', client: target }
  throw new OptionsError(`target must be ${EXPECTED}: a Drizzle database (better-sqlite3, or any Postgres driver), ` +
    'a better-sqlite3 connection or a client of the package postgres')
}

function namedTarget (text: string): SqlTarget {
  const target = text.trim()
  if (target === '') {
    throw new OptionsError('target must not be empty; ' +
      'set LOCAL_AUTH_DB to an SQLite file or a postgres: URL, or leave it unset')
  }
  const [, name = '', authority] = /^([a-z][a-z0-9+.-]{1,30}):(\/\/)?/i.exec(target) ?? []
  const scheme = name.toLowerCase()
  if (/[\p{Cc}\p{Cf}]/u.test(target)) throw new OptionsError(`target must be ${EXPECTED}, without control characters`)
  if (scheme === 'postgres' || scheme === 'postgresql') {
    postgresSettings(target)
    return { dialect: 'postgres', url: target }
  }
  if (scheme === '') return { dialect: 'sqlite', file: sqliteFile(target) }
  if (scheme === 'sqlite' || scheme === 'file') return { dialect: 'sqlite', file: sqliteFile(pathOf(target, scheme)) }
  // Without the slashes it may be a user with a password.
  const named = authority === undefined ? 'a scheme' : `the scheme "${scheme}:"`
  throw new OptionsError(`target has ${named}, which is not known; expected ${EXPECTED}`)
}

/**
 * A path: what begins as one, else a name with a dot or a slash, so that neither `undefined` nor a
 * password nor what belongs to a shell becomes a file.
 */
const PATH = /^(?:[a-z]:)?(?:\.{0,2}[/\\]|(?=.*[./\\])[\p{L}\p{M}\p{N}_.+/\\-]+$)/iu

function sqliteFile (file: string): string {
  if (file === ':memory:') return file
  if (!PATH.test(file) || /[?*<>|"]|['`;/]$/.test(file)) {
    throw new OptionsError('target must name an SQLite file, such as ./local-auth.db, without quotes or parameters; ' +
      `expected ${EXPECTED}`)
  }
  return file
}

/** Returns the path, with or without the two slashes of an authority before it. */
function pathOf (target: string, scheme: 'sqlite' | 'file'): string {
  const rest = target.slice(scheme.length + 1)
  if (scheme === 'sqlite' || !rest.startsWith('//') || rest === '//:memory:') return rest.replace(/^\/\//, '')
  try {
    if (!/[?#]/.test(rest)) return fileURLToPath(target)
  } catch {
    // The error of Node.js shows the URL.
  }
  throw new OptionsError('target must be a file: URL of this machine, such as file:///var/lib/app/users.db')
}

function isSqliteConnection (target: unknown): target is Database {
  return typeof target === 'object' && hasMethods<Database>('pragma', 'prepare')(target)
}

function isDrizzleSqlite (target: unknown): target is SqliteDrizzle {
  return typeof target === 'object' && target !== null && '$client' in target && isSqliteConnection(target.$client)
}

/** Drizzle has materialized views on Postgres alone. */
function isDrizzlePostgres (target: unknown): target is PostgresDrizzle {
  return typeof target === 'object' && hasMethods<PostgresDrizzle>('execute', 'refreshMaterializedView')(target)
}

export function isPostgresClient (target: unknown): target is Sql {
  return typeof target === 'function' && hasMethods<Sql>('unsafe', 'reserve')(target)
}
