import type postgres from 'postgres'
import { TIMEOUT_MS, withTimeout } from '../../base/with-timeout.js'
import { Connection } from './connection.js'
import type { Hosts } from './host-connection.js'

export const CHANNEL = 'svc_auth_revocations'

export interface Notifications {
  /** Returns whether notifications have arrived since the last call without an interruption. */
  listen (): Promise<boolean>
  close (): void
}

export type OpenNotifications = (handlers: {
  notified: (payload: string) => void
  /** Called when the connection was lost or refused; where that is not known, when there is one. */
  changed: () => void
}) => Notifications

/** Listens on a connection of its own to a URL. */
export function notificationsAt (hosts: Hosts): OpenNotifications {
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
export function notificationsOf (client: postgres.Sql): OpenNotifications {
  return ({ notified, changed }) => {
    let request: Promise<postgres.ListenMeta> | null = null
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
