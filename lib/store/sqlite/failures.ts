import { AuthError } from '../../errors.js'

/** What to do about a failure, by its code, or by SQLite's sentence where it has none. */
const ADVICE: ReadonlyArray<readonly [RegExp, string]> = [
  [/ the file does not exist/, 'name one that does, or make it: npx fastify-svc-auth migrate'],
  [/^SQLITE_CANTOPEN/, 'name a file in a folder that exists and that this process may write to'],
  [/^SQLITE_READONLY/, 'let this process write to the file and to its folder'],
  [/^SQLITE_NOTADB/, 'name another file; this one is left as it is'],
  [/^SQLITE_CORRUPT/, 'restore the file from a backup'],
  [/^SQLITE_FULL/, 'make room on the disk'],
  [/^SQLITE_IOERR/, 'make room on the disk, or use another one: this one is full, broken or a network drive'],
  [/^SQLITE_BUSY/, 'another process has held the lock for longer than five seconds; see what it does'],
  [/^ERR_DLOPEN_FAILED| bindings file/, 'build it for this version of Node.js: npm rebuild better-sqlite3'],
  [/ no such table/, 'run the migrations that make the tables, or leave createTables at true'],
  [/ the directory does not exist/, 'make the folder first']
]

export function sqliteCode (error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

export function isTableMissing (error: unknown): boolean {
  return String(error).includes(' no such table')
}

export function isUniqueViolation (error: unknown): boolean {
  return ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'].includes(sqliteCode(error))
}

export function isFactorTaken (error: unknown): boolean {
  return isUniqueViolation(error) && String(error).includes('svc_auth_factors.')
}

/** Only the sentence tells: with `on delete restrict` the code is that of a trigger. */
export function isForeignKeyViolation (error: unknown): boolean {
  return error instanceof Error && error.message === 'FOREIGN KEY constraint failed'
}

/** The error for the caller of the store; its cause says what to do, for the log. */
export function storeFailure (error: unknown): AuthError {
  const said = String(error)
  const advice = ADVICE.find(([beginning]) => beginning.test(`${sqliteCode(error)} ${said}`))?.[1]
  const cause = advice === undefined ? error : new Error(`${said}; ${advice}`, { cause: error })
  return new AuthError('unavailable', { cause })
}
