import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Database } from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import type postgres from 'postgres'
import type { Sql } from 'postgres'
import { withoutUndefined } from '../base/values.js'
import { OptionsError } from '../errors.js'
import { hasMethods } from '../option-checks.js'

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

/** A host of a URL: a name, an address, or the folder of a Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

export type PostgresSettings = ReturnType<typeof postgresSettings>

type Parameters = ReadonlyMap<string, string>

const TLS_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/** What the parameter `ssl` of drivers means, where it is no mode. */
const SSL: Readonly<Record<string, string>> = { true: 'verify-full', 1: 'verify-full', false: 'disable', 0: 'disable' }

/** Parameters that require more than `sslmode=require` does, with the value that does. */
const STRICT = { channel_binding: 'require', sslaccept: 'strict', sslrootcert: 'system' }

const SESSION_ATTRS = ['read-write', 'primary', 'read-only', 'standby', 'prefer-standby'] as const

/** The values of parameters that do not take any: of libpq, then of drivers and tools. */
const VALUES: ReadonlyMap<string, readonly string[]> = new Map(Object.entries({
  sslmode: TLS_MODES,
  sslnegotiation: ['postgres', 'direct'],
  channel_binding: ['disable', 'prefer', 'require'],
  gssencmode: ['disable', 'prefer'],
  client_encoding: ['utf8', 'utf-8', 'auto'],
  target_session_attrs: ['any', ...SESSION_ATTRS],
  ssl: [...TLS_MODES, ...Object.keys(SSL)],
  sslaccept: ['strict', 'accept_invalid_certs'],
  pool_mode: ['session', 'transaction', 'statement']
}))

const OTHERS = 'host port user password dbname sslrootcert sslcert sslkey connect_timeout schema max prepare ' +
  'connection_limit idle_timeout keep_alive pgbouncer statement_cache_size'

/** Parameters that change nothing that the store does. */
const IGNORED = 'keepalives keepalives_idle keepalives_interval keepalives_count fallback_application_name debug ' +
  'supa workaround uselibpqcompat pool_timeout socket_timeout max_lifetime max_pipeline fetch_types backoff ' +
  'publications sslcompression'

/** Settings of Postgres with which a connection may begin; a name with a dot is of an extension. */
const SETTINGS = 'application_name options search_path role timezone jit work_mem synchronous_commit lock_timeout ' +
  'statement_timeout transaction_timeout idle_session_timeout idle_in_transaction_session_timeout'

const KNOWN: ReadonlySet<string> = new Set([...VALUES.keys(), ...`${OTHERS} ${IGNORED}`.split(' ')])
const isSetting = (name: string): boolean =>
  SETTINGS.split(' ').includes(name.toLowerCase()) || /^[a-z_]\w*\.\w+$/i.test(name)

/**
 * Reads a URL as libpq does, with the parameters that hosts and tools add to it. It may name
 * several hosts, separated by commas: with each of them it must be a URL.
 *
 * @throws OptionsError that names a parameter and shows no value
 * @see https://www.postgresql.org/docs/current/libpq-connect.html
 */
export function postgresSettings (target: string) {
  // An unescaped slash or hash in the password ends the host: the text before it may look like host
  // and port.
  const [url, login = '', hosts = '', path = '', query = ''] =
    /^[a-z]+:\/\/((?:[^/?#]*@)?)([^/?#@]*)(\/[^?#@]*)?(?:\?([^#]*))?$/i.exec(target) ?? []
  const isUrl = (host: string): boolean => URL.canParse(`postgres://${login}${host || 'localhost'}${path}`)
  if (url === undefined || !isEscaped(url) || !hosts.split(',').every(isUrl)) {
    throw new OptionsError('target must be a whole postgres: URL, ' +
      'such as postgres://user:password@localhost:5432/app; ' +
      'characters like @ and / in the password are written as %40 and %2F')
  }
  const given = parametersIn(query)
  const [user, password] = login.slice(0, -1).split(/:(.*)/s).map(decodeURIComponent)
  const number = (name: string): number | undefined => Number(given.get(name)) || undefined
  const isPooled = given.get('pgbouncer') === 'true' || given.get('statement_cache_size') === '0' ||
    !['session', undefined].includes(given.get('pool_mode'))
  const schema = given.get('schema')?.replaceAll('"', '""')
  return {
    hosts: hostsOf(hosts || process.env.PGHOST || 'localhost', given),
    options: withoutUndefined({
      user: given.get('user') ?? user,
      password: given.get('password') ?? password,
      database: given.get('dbname') ?? decodeURIComponent(path.slice(1)),
      max: number('max') ?? number('connection_limit'),
      connect_timeout: number('connect_timeout'),
      idle_timeout: number('idle_timeout'),
      keep_alive: number('keep_alive'),
      // Behind a pooler the next statement may run on another connection.
      prepare: !/^(?:false|disable|0)$/.test(given.get('prepare') ?? String(!isPooled)),
      sslnegotiation: given.get('sslnegotiation')
    }),
    sessionAttrs: SESSION_ATTRS.find(attrs => attrs === given.get('target_session_attrs')),
    connection: {
      ...(schema !== undefined && { search_path: `"${schema}"` }),
      ...Object.fromEntries([...given].filter(([name]) => isSetting(name)))
    },
    ...encryptionOf(given)
  }
}

/** As in libpq a plus sign is itself, but in `options`, where drivers write it for a blank. */
function parametersIn (query: string): Parameters {
  const parameters = Array.from(new URLSearchParams(query.replaceAll('+', '%2B')), ([name, value]) => {
    const values = VALUES.get(name)
    if (!KNOWN.has(name) && !isSetting(name)) {
      // It may be a part of a password that is not escaped.
      const isName = /^[a-z]{2,30}(?:_[a-z]{1,30}){0,4}$/i.test(name) && query.includes(`${name}=`) &&
        !/@|password=/i.test(query)
      throw refused(isName ? name : '(not shown)', 'which the store does not know; ' +
        'leave it out, or write a setting of Postgres in options, such as options=-c%20jit%3Doff')
    }
    if (values === undefined) return [name, name === 'options' ? value.replaceAll('+', ' ') : value] as const
    if (value === '' || values.includes(value.toLowerCase())) return [name, value.toLowerCase()] as const
    throw refused(name, `whose value must be one of ${values.join(', ')}`)
  })
  return new Map(parameters.filter(([, value]) => value !== ''))
}

function refused (parameter: string, problem: string): OptionsError {
  return new OptionsError(`target has the parameter ${parameter}, ${problem}`)
}

function isEscaped (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function hostsOf (hosts: string, given: Parameters): Host[] {
  const addresses = hosts.split(',').map(host => /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(host) ?? ['', host])
  const names = given.get('host')?.split(',') ?? addresses.map(([, name = '']) => decodeURIComponent(name))
  const ports = given.get('port')?.split(',') ?? addresses.map(([,, port]) => port)
  return names.map((name, index) => {
    const host = name.replace(/^\[|\]$/g, '') || 'localhost'
    const port = Number((ports[index] ?? ports[0]) || process.env.PGPORT || 5432)
    if (!(port > 0 && port < 65536)) throw refused('port', 'which must be a number from 1 to 65535')
    return { host, port }
  })
}

/**
 * The driver cannot bind authentication to the channel (SCRAM-SHA-256-PLUS): where that is
 * required, certificate and host are verified instead.
 */
function encryptionOf (given: Parameters) {
  const [ca, cert, key, ssl = ''] = ['sslrootcert', 'sslcert', 'sslkey', 'ssl'].map(name => given.get(name))
  const needsVerification = (name: string): OptionsError => refused(name, 'which needs sslmode=verify-full')
  let mode = given.get('sslmode') ?? SSL[ssl] ?? ssl
  const strict = Object.entries(STRICT).find(([name, value]) => given.get(name) === value)?.[0]
  if (strict !== undefined && ['disable', 'no-verify'].includes(mode)) throw needsVerification(strict)
  // Anyone has a certificate of a public authority: without the host it would tell nothing.
  if (strict !== undefined || (mode === 'verify-ca' && ca === undefined)) mode = 'verify-full'
  if (mode === 'require' && ca !== undefined) mode = 'verify-ca'
  const rejectUnauthorized = mode.startsWith('verify-')
  if (ca !== undefined && !rejectUnauthorized) throw needsVerification('sslrootcert')
  if (cert !== undefined && ['', 'disable', 'allow', 'prefer'].includes(mode)) throw needsVerification('sslcert')
  if ((cert === undefined) !== (key === undefined)) throw refused('sslcert', 'which needs sslkey, and is needed by it')
  const read = (file: string | undefined) => file === undefined || file === 'system' ? undefined : readFileSync(file)
  return {
    isUnverified: mode === 'no-verify',
    encryptionTo ({ host }: Host): Pick<postgres.Options<{}>, 'ssl'> {
      // As in libpq, connections to a socket are not.
      if (mode === 'disable' || host.startsWith('/')) return { ssl: false }
      if (mode === '') return {}
      if (mode === 'allow' || mode === 'prefer') return { ssl: 'prefer' }
      return {
        ssl: {
          ...withoutUndefined({ ca: read(ca), cert: read(cert), key: read(key) }),
          // What the certificate must be for: the driver tells `tls.connect` no addresses.
          host,
          rejectUnauthorized,
          ...(mode === 'verify-ca' && { checkServerIdentity: () => undefined })
        }
      }
    }
  }
}
