import { fileURLToPath } from 'node:url'
import type { Database } from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { Sql } from 'postgres'
import { OptionsError } from '../errors.js'
import type { PostgresDatabase } from './postgres/prepare.js'
import { incompatibility } from './sqlite/compatibility.js'

/** A Drizzle database on better-sqlite3, with the connection that it was given. */
type DrizzleDatabase = BetterSQLite3Database & { $client: Database }

export type SqliteTarget =
  | { dialect: 'sqlite', file: string }
  | { dialect: 'sqlite', connection: Database }
  | { dialect: 'sqlite', db: DrizzleDatabase }

export type PostgresTarget =
  | { dialect: 'postgres', url: string }
  | { dialect: 'postgres', client: Sql }
  | { dialect: 'postgres', db: PostgresDatabase }

export type SqlTarget = SqliteTarget | PostgresTarget

const EXPECTED = 'an SQLite file, a sqlite:, file: or postgres: URL, :memory:, or an existing engine'

/**
 * Tells what a target names; opens nothing.
 *
 * @throws OptionsError when it is none of them; a URL is not printed, it may hold a password
 */
export function sqlTarget (target: unknown): SqlTarget {
  if (typeof target === 'string') return namedTarget(target)
  if (isSqliteConnection(target)) return { dialect: 'sqlite', connection: compatible(target) }
  if (isDrizzleSqlite(target)) {
    compatible(target.$client)
    return { dialect: 'sqlite', db: target }
  }
  if (isDrizzlePostgres(target)) return { dialect: 'postgres', db: target }
  if (isPostgresClient(target)) return { dialect: 'postgres', client: target }
  throw new OptionsError(`target must be ${EXPECTED}: a Drizzle database (better-sqlite3, or any Postgres driver), a better-sqlite3 connection or a client of the package postgres`)
}

function namedTarget (target: string): SqlTarget {
  if (target === '') throw new OptionsError('target must not be empty; set LOCAL_AUTH_DB to an SQLite file or a postgres: URL, or leave it unset')
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(target)?.[1]?.toLowerCase()
  if (scheme === 'postgres' || scheme === 'postgresql') return { dialect: 'postgres', url: postgresUrl(target) }
  if (scheme === undefined) return { dialect: 'sqlite', file: sqliteFile(target) }
  if (scheme === 'sqlite' || scheme === 'file') return { dialect: 'sqlite', file: sqliteFile(pathOf(target, scheme)) }
  throw new OptionsError(`target has the scheme "${scheme}:", which is not known; expected ${EXPECTED}`)
}

/** Several hosts, with a comma between them, are for the driver; the URL must be one with each of them. */
function postgresUrl (target: string): string {
  const [url, authority = '', rest = ''] = /^[a-z]+:\/\/([^/?#]*)([/?#].*)?$/is.exec(target) ?? []
  const hostsAt = authority.lastIndexOf('@') + 1
  const login = authority.slice(0, hostsAt)
  const hosts = authority.slice(hostsAt)
  // A slash or a hash of the password that is not escaped ends the host: what comes before may look like host and port.
  const isWhole = url !== undefined && isEscaped(login) && !/#|^[^?]*@/.test(rest)
  if (!isWhole || !hosts.split(',').every(host => URL.canParse(`postgres://${login}${host}${rest}`))) {
    throw new OptionsError('target must be a whole postgres: URL, such as postgres://user:password@localhost:5432/app; characters like @ and / in the password are written as %40 and %2F')
  }
  return target
}

function isEscaped (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function sqliteFile (file: string): string {
  if (file.trim() === '' || file.endsWith('/')) throw new OptionsError('target must name an SQLite file, such as ./local-auth.db')
  return file
}

/** Both schemes are written with and without the two slashes of an authority. */
function pathOf (target: string, scheme: 'sqlite' | 'file'): string {
  const rest = target.slice(scheme.length + 1)
  if (scheme === 'sqlite' || !rest.startsWith('//') || rest === '//:memory:') return rest.replace(/^\/\//, '')
  try {
    return fileURLToPath(target)
  } catch (error) {
    throw new OptionsError('target must be a file: URL of this machine, such as file:///var/lib/app/users.db', { cause: error })
  }
}

/** @throws OptionsError for a connection whose first query would end the process */
function compatible (connection: Database): Database {
  const problem = incompatibility(connection)
  if (problem !== null) throw new OptionsError(`target cannot be used: ${problem}`)
  return connection
}

function isSqliteConnection (target: unknown): target is Database {
  return typeof target === 'object' && hasMethods(target, 'pragma', 'prepare')
}

function isDrizzleSqlite (target: unknown): target is DrizzleDatabase {
  return typeof target === 'object' && target !== null && '$client' in target && isSqliteConnection(target.$client)
}

/** Of Drizzle's databases only those on Postgres have materialized views. */
function isDrizzlePostgres (target: unknown): target is PostgresDatabase {
  return typeof target === 'object' && hasMethods(target, 'execute', 'refreshMaterializedView')
}

function isPostgresClient (target: unknown): target is Sql {
  return typeof target === 'function' && hasMethods(target, 'unsafe', 'reserve')
}

function hasMethods (target: unknown, ...names: string[]): boolean {
  return target !== null && names.every(name => typeof Reflect.get(Object(target), name) === 'function')
}
