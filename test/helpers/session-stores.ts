import type { SessionStore } from '@fastify/session'
import { SlowSessionStore } from './slow-session-store.js'

/** What must hold, holds with the session store that is there by default and with one in another process. */
export const SESSION_STORES: ReadonlyArray<readonly [name: string, create: () => SessionStore | undefined]> = [
  ['the in-memory session store', () => undefined],
  ['a session store that serialises', () => new SlowSessionStore()]
]
