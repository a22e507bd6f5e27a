import { randomUUID } from 'node:crypto'
import type { ListenMeta, Sql } from 'postgres'
import { Sweeper, TIMEOUT_MS, withTimeout } from '../../base/concurrency.js'
import { UUID } from '../../base/values.js'
import { type SQL, and, gt, inArray, lt, revocations, sql } from '../../drizzle/postgres.js'
import type { RevocationListener } from '../../session/store.js'
import { given } from '../sql-rows.js'
import type { PostgresDrizzle } from '../sql-target.js'
import { Connection, Hosts } from './connection.js'
import { type PostgresDatabase, json } from './database.js'
import { postgresFailures } from './failures.js'

/** Milliseconds since the epoch, by the one clock that all processes share. */
const NOW = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** A process that was away for longer misses revocations. */
const KEPT_MS = 3_600_000
const BATCH = 1000

/**
 * The part of a statement that records a revocation for the users in another part. At its commit
 * the other processes are told, of the id alone: every role of the database may notify and listen,
 * but not read and write the table.
 *
 * @param ended what follows `from`, with a column `user_id`
 */
export function recordedRevocation (db: PostgresDrizzle, ended: SQL) {
  return db.$with('revocation').as(insertion(db, ended))
}

function insertion (db: PostgresDrizzle, ended: SQL) {
  return db.insert(revocations)
    .select(sql`select ${given('revocationId')}::uuid, user_id, ${NOW} from ${ended}`)
    .returning({ notified: sql`pg_notify('${sql.raw(CHANNEL)}', ${revocations.id}::text)`.as('notified') })
}

function oldRemoved (db: PostgresDrizzle) {
  const old = db.select({ id: revocations.id }).from(revocations)
    .where(lt(revocations.revokedAt, sql`${NOW} - ${KEPT_MS}`))
    .limit(BATCH)
    .for('update', { skipLocked: true })
  return db.delete(revocations).where(inArray(revocations.id, old)).returning({ id: revocations.id })
}

export type PostgresRevocations = ReturnType<typeof postgresRevocations>

/**
 * Each revocation is one row, written by the statement that ends sessions.
 *
 * @param notifier where to listen: a URL, or a client of the application; null where notifications
 *   are not passed on
 */
export function postgresRevocations (database: PostgresDatabase, notifier: Hosts | Sql | null) {
  const notifications = notifier instanceof Hosts ? notificationsAt(notifier) : notifier && notificationsOf(notifier)
  const follower = new RevocationFollower(database, notifications)
  const insert = database.prepared(db => insertion(db, sql`(select ${given('userId')}::uuid as user_id) signed_out`))
  const removal = database.prepared(oldRemoved)
  const sweep = async (): Promise<void> => {
    if ((await removal({})).length === BATCH) await sweep()
  }
  const sweeper = new Sweeper(sweep, database.notSwept, Date.now())

  /**
   * Runs a statement with {@link recordedRevocation}, which the caller announces in this process.
   * One that fails may have been committed all the same: then its revocation is followed, unless
   * the caller has announced it before.
   */
  const run = async <T>(
    statement: (revocation: { revocationId: string }) => Promise<T>, { isAnnounced = false } = {}
  ): Promise<T> => {
    const revocationId = randomUUID()
    follower.ignore(revocationId)
    try {
      return await statement({ revocationId })
    } catch (error) {
      if (!isAnnounced) follower.expect(revocationId)
      throw error
    } finally {
      sweeper.start(Date.now())
    }
  }

  return {
    run,
    async record (userId: string) {
      await run(revocation => insert({ ...revocation, userId }), { isAnnounced: true })
    },
    follow: async (listener: RevocationListener) => { follower.follow(listener) },
    close: () => { follower.close() }
  }
}

const ROUND_MS = 10_000
const RETRY_MS = 1000

/** So long after its time a revocation is read: it is seen when its statement is committed. */
const OVERLAP_MS = 60_000

/** Longer, because a revocation of this process is known before its statement runs. */
const REMEMBERED_MS = 2 * OVERLAP_MS

const POLLS = 'sign-outs in other processes are heard of within ten seconds and not at once, ' +
  'because notifications of Postgres do not arrive; they do on a URL or a client of the package postgres, ' +
  'without a pooler or through one in session mode'
const FAILS = 'sign-outs in other processes cannot be heard of at the moment; they will be when Postgres answers'

/** A notification takes less time, unless it does not arrive. */
const DELIVERY_MS = 1000

/**
 * Tells of the revocations of other processes, of each once. A notification tells at once; the
 * table is read for those that were missed, in rounds and whenever the connection was lost.
 */
class RevocationFollower {
  /** Null when none arrive. */
  #notifications: Notifications | null
  readonly #recent
  readonly #notified
  readonly #listeners: RevocationListener[] = []
  /** Those whose log does not say yet that it polls. */
  readonly #unwarned: RevocationListener[] = []
  /** The revocations that need not be told any more, and since when. */
  readonly #heard = new Map<string, number>()
  /** The ids of notifications whose rows are looked up. */
  readonly #ids = new Set<string>()
  /** All revocations until then have been told. By the clock of the server. */
  #since: number | null = null
  #startedAt = 0
  #again = Promise.withResolvers<void>()
  #hasFailed = false
  #isClosed = false

  constructor (database: PostgresDatabase, openNotifications: OpenNotifications | null) {
    this.#notifications = openNotifications?.({
      notified: id => { this.#notice(id) },
      changed: () => { this.#again.resolve() }
    }) ?? null
    const revocation = { id: revocations.id, userId: revocations.userId }
    const since = sql`coalesce(${given('since')}::bigint, clock.present - ${given('age')}::bigint)`
    this.#recent = database.prepared(db => db
      .select({
        revocation: { ...revocation, revokedAt: revocations.revokedAt },
        present: sql`clock.present`.mapWith(Number)
      })
      .from(sql`(select ${NOW} as present) clock`)
      .leftJoin(revocations, gt(revocations.revokedAt, since)))
    const ids = sql`(select value::uuid from jsonb_array_elements_text(${json('ids')}))`
    const isUntold = gt(revocations.revokedAt, sql`coalesce(${given('since')}::bigint, 0)`)
    this.#notified = database.prepared(db => db.select(revocation).from(revocations)
      .where(and(inArray(revocations.id, ids), isUntold)))
  }

  /** Passes over a revocation, because this process announces it. */
  ignore (id: string): void {
    this.#heard.set(id, performance.now())
    if (this.#listeners.length === 0) this.#forget(performance.now())
  }

  /** Tells of a revocation that was passed over, if it is recorded. */
  expect (id: string): void {
    this.#heard.delete(id)
    // Its notification was passed over too.
    if (this.#listeners.length > 0) this.#notice(id)
  }

  follow (listener: RevocationListener): void {
    this.#unwarned.push(listener)
    if (this.#listeners.push(listener) > 1) return
    this.#startedAt = performance.now()
    if (this.#notifications === null) this.#sayThatItPolls()
    this.#work()
  }

  close (): void {
    this.#isClosed = true
    this.#notifications?.close()
    this.#again.resolve()
  }

  async #work (): Promise<void> {
    while (!this.#isClosed) {
      this.#again = Promise.withResolvers()
      const hasRead = await this.#round()
      const timer = setTimeout(this.#again.resolve, hasRead ? ROUND_MS : RETRY_MS).unref()
      await this.#again.promise
      clearTimeout(timer)
    }
  }

  /** Returns whether the next round may wait. */
  async #round (): Promise<boolean> {
    let failure: unknown
    const hasListened = await this.#notifications?.listen().catch((error: unknown) => { failure = error })
    try {
      const hasMissed = await this.#read()
      this.#hasFailed = false
      if (postgresFailures.isAnswer(failure)) this.#sayThatItPolls(failure)
      if (hasListened && hasMissed) {
        // A pooler passes none on, and reports each one that its connections receive.
        this.#notifications?.close()
        this.#notifications = null
        this.#sayThatItPolls()
      }
      return failure === undefined || postgresFailures.isAnswer(failure)
    } catch (error) {
      if (!this.#hasFailed && !this.#isClosed) for (const { log } of this.#listeners) log.warn({ err: error }, FAILS)
      this.#hasFailed = true
      return false
    }
  }

  /** Returns whether there were revocations that a notification should have told of before. */
  async #read (): Promise<boolean> {
    const readAt = performance.now()
    const age = Math.ceil(readAt - this.#startedAt) + TIMEOUT_MS
    const rows = await this.#recent({ since: this.#since, age })
    const present = Number(rows[0]?.present)
    const untold = rows.flatMap(({ revocation }) =>
      revocation === null || this.#heard.has(revocation.id) ? [] : [revocation])
    const hasMissed = untold.some(({ id, revokedAt }) => !this.#ids.has(id) && revokedAt < present - DELIVERY_MS)
    this.#tell(untold)
    this.#since = Math.max(this.#since ?? present - age, present - OVERLAP_MS)
    this.#forget(readAt)
    return hasMissed
  }

  #notice (id: string): void {
    if (!UUID.test(id) || this.#heard.has(id)) return
    this.#ids.add(id)
    if (this.#ids.size === 1) this.#lookUp()
  }

  async #lookUp (): Promise<void> {
    try {
      while (this.#ids.size > 0) {
        const ids = [...this.#ids]
        this.#tell(await this.#notified({ ids, since: this.#since }))
        for (const id of ids) this.#ids.delete(id)
      }
    } catch {
      // The next round reads them.
      this.#ids.clear()
    }
  }

  #tell (revocations: ReadonlyArray<{ id: string, userId: string }>): void {
    for (const { id, userId } of revocations) {
      if (this.#isClosed || this.#heard.has(id)) continue
      this.#heard.set(id, performance.now())
      for (const listener of this.#listeners) listener.revoked(userId)
    }
  }

  #forget (readAt: number): void {
    for (const [id, heardAt] of this.#heard) {
      if (heardAt >= readAt - REMEMBERED_MS) return
      this.#heard.delete(id)
    }
  }

  #sayThatItPolls (error?: unknown): void {
    for (const { log } of this.#unwarned.splice(0)) log.info({ ...(error !== undefined && { err: error }) }, POLLS)
  }
}

const CHANNEL = 'svc_auth_revocations'

interface Notifications {
  /** Returns whether notifications have arrived since the last call without an interruption. */
  listen (): Promise<boolean>
  close (): void
}

type OpenNotifications = (handlers: {
  notified: (payload: string) => void
  /** Called when the connection was lost or refused; where that is not known, when there is one. */
  changed: () => void
}) => Notifications

/** Listens on a connection of its own to a URL. */
function notificationsAt (hosts: Hosts): OpenNotifications {
  return ({ notified, changed }) => {
    let connection: Connection | null = null
    const drop = (): void => {
      connection?.drop()
      connection = null
    }
    return {
      async listen () {
        if (connection?.isOld) drop()
        const isNew = connection === null
        const lost = (): void => {
          // One that was given up closes later than its successor listens.
          if (connection !== listening) return
          drop()
          changed()
        }
        const listening = connection ??= new Connection(hosts, { hasTimeLimit: false, notified, lost })
        try {
          // Each connection of a pooler that is asked to listen goes on to: it is asked once. One
          // that a router has forgotten does not answer. The channel shows in pg_stat_activity.
          const statement = isNew ? `listen ${CHANNEL}` : `select '${CHANNEL}'`
          await withTimeout(TIMEOUT_MS, listening.run(client => client.unsafe(statement)), 'Postgres')
          return !isNew
        } catch (error) {
          if (connection === listening) drop()
          throw error
        }
      },
      close: drop
    }
  }
}

/** Listens with an application's client, which connects and listens again by itself. */
function notificationsOf (client: Sql): OpenNotifications {
  return ({ notified, changed }) => {
    let request: Promise<ListenMeta> | null = null
    let failure: unknown
    return {
      async listen () {
        if (request === null) {
          const listening = (): void => {
            failure = undefined
            changed()
          }
          // Not awaited: the client may wait for a server that is down.
          request = client.listen(CHANNEL, notified, listening)
          request.catch((error: unknown) => {
            failure = error
            changed()
          })
        }
        if (failure !== undefined) throw failure
        return false
      },
      close () {
        request?.then(({ unlisten }) => unlisten()).catch(() => {})
      }
    }
  }
}
