import type { SessionStore } from '@fastify/session'
import { MemorySessionStore } from '../../lib/session/memory-session-store.js'
import { SlowSessionStore } from './slow-session-store.js'

/** What must hold, holds with the session store that is there by default and with one in another process. */
export const SESSION_STORES: ReadonlyArray<readonly [name: string, create: () => SessionStore]> = [
  ['the in-memory session store', () => new MemorySessionStore()],
  ['a session store that serialises', () => new SlowSessionStore()]
]
