import type { SessionStore } from '@fastify/session'
import { MemorySessionStore } from '../../lib/session/memory-session-store.js'
import { SlowSessionStore } from './slow-session-store.js'
import { isThorough } from './thorough.js'

/** What must hold, holds with the session store that is there by default and with one in another process. */
export const SESSION_STORES: ReadonlyArray<readonly [name: string, create: () => SessionStore]> = [
  ['the in-memory session store', () => new MemorySessionStore()],
  ['a session store that serialises', () => new SlowSessionStore()]
]

/** Both of them in `test:all`. `npm test` runs on the one that finds more mistakes, where sessions are not what is tested. */
export const SOME_SESSION_STORES = isThorough ? SESSION_STORES : SESSION_STORES.slice(1)
