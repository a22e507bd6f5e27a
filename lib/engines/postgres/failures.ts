import { AuthError } from '../../errors.js'
import { EngineFailures } from '../engine-failures.js'

const UNSTORABLE = 'A value holds a NUL character or half a surrogate pair, which Postgres cannot store.'

const UNIQUE_VIOLATION = '23505'
const NOT_NULL_VIOLATION = '23502'
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const DUPLICATE_TABLE = '42P07'
const TOO_MANY_CONNECTIONS = '53300'

/** What a look into the database may find too, before a statement meets it. */
const FOUND = { noTable: '42P01', noSchema: '3F000', readOnly: '25006', noRight: '42501' }

const UNKNOWN_AUTHORITY =
  "name the file of the authority's certificate in the URL: sslmode=verify-full&sslrootcert=ca.pem"

/** What to do about a failure, by its SQLSTATE or code. */
const ADVICE: Record<string, string> = {
  ECONNREFUSED: 'start the server, or correct host and port',
  ECONNRESET: 'see whether the server is up, and with sslmode in the URL whether it offers TLS (ssl = on)',
  ENOENT: 'start the server, or correct the folder of its socket and the port',
  ENOTFOUND: 'correct the host',
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  ERR_TLS_CERT_ALTNAME_INVALID: 'connect to a host that the certificate is for; ' +
    'sslmode=verify-ca with sslrootcert compares no host',
  CONNECT_TIMEOUT: 'see whether the server is up and can be reached',
  '08P01': 'remove the parameter that the pooler refuses from the URL, ' +
    'or let the pooler ignore it (PgBouncer: ignore_startup_parameters)',
  '28P01': 'correct user and password',
  28000: 'where the server demands TLS, add sslmode=verify-full to the URL; ' +
    'else admit this user (pg_hba.conf), or name another one',
  22023: 'correct this setting in the URL',
  42704: 'correct this setting in the URL',
  '3D000': 'create the database first: createdb',
  [FOUND.noTable]: 'run the migrations that make the tables, or leave createTables at true',
  [FOUND.noSchema]: 'let search_path begin with the schema of the tables, such as ?search_path=app in the URL; ' +
    'createTables: false takes the tables that are found',
  [FOUND.readOnly]: 'connect to the primary: a standby cannot write; with several hosts in the URL, ' +
    'target_session_attrs=read-write chooses it; on a primary, set default_transaction_read_only = off',
  [FOUND.noRight]: 'grant this role what is missing, ' +
    'or make the tables with a role that may and set createTables to false',
  57014: 'see what holds a lock, or keeps the server busy (pg_stat_activity)',
  53100: 'make room on the disk of the server',
  [TOO_MANY_CONNECTIONS]: 'lower the sizes of the connection pools or raise max_connections'
}

/** For an encoding that lacks characters, or is none (SQL_ASCII). */
export function otherEncoding (encoding: string): Error {
  return new Error(`Postgres: the database has the encoding ${encoding}, which cannot store every name and e-mail; ` +
    "create another one: create database app encoding 'UTF8' template template0")
}

/** The SQLSTATE of a failed statement, or the code of a failed connection. */
function sqlState (error: unknown): unknown {
  return Object(reasonOf(error)).code
}

const hasState = (...states: unknown[]) => (error: unknown): boolean => states.includes(sqlState(error))

/** What Postgres calls text that it cannot store: in `text`, and the two kinds in `jsonb`. */
const isUnstorable = hasState('22021', '22P05', '22P02')

class PostgresFailures extends EngineFailures {
  readonly isUniqueViolation = hasState(UNIQUE_VIOLATION)

  /** The statement that writes a factor of another user gives it no user. */
  readonly isFactorTaken = hasState(NOT_NULL_VIOLATION)

  /** A reference with `on delete restrict` has a state of its own since Postgres 18. */
  readonly isForeignKeyViolation = hasState('23503', '23001')

  /** Whether a concurrent statement came first: this one may succeed when it is run again. */
  readonly isRetryable = hasState(UNIQUE_VIOLATION, SERIALIZATION_FAILURE, DEADLOCK, DUPLICATE_TABLE)

  /** Whether transactions got in each other's way: this one may succeed when it is run again. */
  readonly isConflict = hasState(SERIALIZATION_FAILURE, DEADLOCK)

  /** Whether the connection is gone, by the codes of the drivers, or what the server said last. */
  isConnectionLost (error: unknown): boolean {
    const { severity, message } = Object(reasonOf(error))
    return /^(FATAL|PANIC)$/.test(severity) || /^Connection terminated/.test(message) ||
      /^(CONNECTION_\w+|ECONNRESET|EPIPE)$/.test(String(sqlState(error)))
  }

  readonly isTableMissing = hasState(FOUND.noTable)

  /**
   * Whether the connection may cause an answer, by what it took over when it was opened: the
   * settings and the role of that time.
   */
  readonly isOfConnection = hasState(...Object.values(FOUND))

  /** Whether the server, or a limit of the role or the database, refused a connection for now. */
  readonly hasNoRoom = hasState(TOO_MANY_CONNECTIONS)

  /** Whether the server answered a statement with an error and keeps the connection. */
  isAnswer (error: unknown): boolean {
    return Object(reasonOf(error)).severity === 'ERROR'
  }

  /**
   * Whether each host of a URL would refuse a connection like this, as with a wrong password. One
   * that lacks resources (class 53) or is starting up or shutting down (class 57) stands alone.
   */
  isOfEachHost (error: unknown): boolean {
    return error instanceof Error && 'severity' in error && !/^5[37]/.test(String(sqlState(error)))
  }

  /** Poolers like PgBouncer may refuse connections with the parameter `statement_timeout`. */
  refusesTimeLimit (error: unknown): boolean {
    return sqlState(error) === '08P01' && String(error).includes('startup parameter: statement_timeout')
  }

  /** What a look into the database found, as the error that a statement would meet. */
  refusal (found: keyof typeof FOUND, message: string): Error {
    return Object.assign(new Error(message), { code: FOUND[found] })
  }

  readonly toAuthError = (error: unknown): AuthError => {
    const cause = this.causeOf(error)
    if (isUnstorable(error)) return new AuthError('invalid_request', { message: UNSTORABLE, cause })
    const advice = ADVICE[String(sqlState(error))]
    if (advice === undefined || !(cause instanceof Error)) return new AuthError('unavailable', { cause })
    return new AuthError('unavailable', { cause: new Error(`Postgres: ${cause.message}; ${advice}`, { cause }) })
  }

  /** Without the values in it: PGlite adds the parameters, and the server the row it refused. */
  override causeOf (error: unknown): unknown {
    const reason = reasonOf(error)
    if (!(reason instanceof Error)) return reason
    // A host with several addresses fails with an error for each, and says nothing itself.
    const [first]: unknown[] = reason instanceof AggregateError ? reason.errors : []
    const { name, message, stack } = first instanceof Error ? first : reason
    return Object.assign(new Error(message), { name, stack, ...('code' in reason && { code: reason.code }) })
  }
}

export const postgresFailures = new PostgresFailures()

/** Drizzle's error prints the parameters: e-mails and password hashes must not reach a log. */
function reasonOf (error: unknown): unknown {
  return error instanceof Error && 'params' in error && error.cause !== undefined ? error.cause : error
}
