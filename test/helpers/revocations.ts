import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type postgres from 'postgres'
import type { Test } from 'tap'
import { Accounts, type Revocations, SqlAuthStore, type SqlEngine } from '../../lib/index.js'
import type { MailTokenClaims } from '../../lib/accounts/credentials.js'
import type { RevocationListener } from '../../lib/session/store.js'
import { clientOf, query } from './postgres.js'
import { isSoon } from './soon.js'

/** Opens a store that is closed at the end of the test. */
export function openStore (t: Test, target: string | SqlEngine): SqlAuthStore {
  const store = new SqlAuthStore(target)
  t.teardown(() => store.close())
  return store
}

/**
 * A client of the package postgres for a store that listens, which ends with the test. It fetches no array types: when its
 * connection ends while it does, nobody handles the rejection (issue 1192 of the package).
 */
export const listeningClientOf = (t: Test, url: string): postgres.Sql => clientOf(t, url, { fetch_types: false })

/** The endings of a store on Postgres. */
export function endingsIn ({ revocations }: SqlAuthStore): Revocations {
  if (revocations === null) throw new Error('the store shares no revocations')
  return revocations
}

/** Notes what a store tells of the endings of others. */
export class Ear implements RevocationListener {
  readonly heard: string[] = []
  /** The messages for the log, with what they are about. */
  readonly notes: Array<{ message: string, err?: unknown }> = []
  readonly log = {
    info: (context: object, message: string) => { this.#note({ ...context, message }) },
    warn: (context: object, message: string) => { this.#note({ ...context, message }) }
  }

  readonly #events = new EventEmitter().setMaxListeners(0)

  /** Follows the endings of a store. */
  static async of (store: SqlAuthStore): Promise<Ear> {
    const ear = new Ear()
    await endingsIn(store).follow(ear)
    return ear
  }

  revoked (userId: string): void {
    this.heard.push(userId)
    this.#events.emit(userId)
  }

  /** Resolves when the ending of a user was heard. */
  async hears (userId: string): Promise<void> {
    if (!this.heard.includes(userId)) await once(this.#events, userId)
  }

  async isNoted (): Promise<void> {
    if (this.notes.length === 0) await once(this.#events, 'note')
  }

  #note (note: { message: string, err?: unknown }): void {
    this.notes.push(note)
    this.#events.emit('note')
  }
}

/** A user with a password and a link at `dev`; the address is not confirmed. */
export async function createUser (store: SqlAuthStore): Promise<MailTokenClaims> {
  const userId = randomUUID()
  const email = `${userId}@example.com`
  const link = { provider: 'local', subject: email, claims: { sub: userId, email } }
  await new Accounts(store).createUser({ userId, email, emailVerified: false, name: null, claims: {}, link, passwordHash: 'a hash' })
  await new Accounts(store).addLink(userId, { provider: 'dev', subject: userId, claims: { sub: userId }, verifiedEmail: null })
  return { userId, email, generation: 0 }
}

/** The store on each database that {@link settled} records with. */
const bystanders = new Map<string, SqlAuthStore>()

/** Resolves when all that was recorded before has been told. */
export async function settled (t: Test, url: string, ...ears: Ear[]): Promise<void> {
  const last = randomUUID()
  const store = bystanders.get(url) ?? openStore(t, url)
  if (!bystanders.has(url)) {
    bystanders.set(url, store)
    t.teardown(() => bystanders.delete(url))
  }
  await endingsIn(store).record(last)
  await Promise.all(ears.map(ear => ear.hears(last)))
  for (const { heard } of ears) t.equal(heard.pop(), last)
}

/** What connections that listen have asked last, and no others: to listen, with a URL or with a client, or whether the server is there. */
const LISTENS = "query ~ '^(listen|select) .?svc_auth_revocations.?$'"

/** Ends the connections that listen in a database. Resolves to their number. */
export async function endListening (url: string): Promise<number> {
  const ended = await query(url, `
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and ${LISTENS}`)
  return ended.length
}

/** Resolves when so many connections listen in a database. */
export async function whenListening (url: string, count: number): Promise<void> {
  if (!await isSoon(async () => await connectionsListening(url) >= count)) throw new Error('too few connections listen')
}

/** The number of connections that listen in a database. */
export async function connectionsListening (url: string): Promise<number> {
  const rows = await query(url, `
    select from pg_stat_activity
    where datname = current_database() and ${LISTENS} and state = 'idle'`)
  return rows.length
}
