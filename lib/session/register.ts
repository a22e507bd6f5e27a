import fastifyCookie from '@fastify/cookie'
import fastifySession, { type FastifySessionOptions } from '@fastify/session'
import type { FastifyInstance } from 'fastify'
import { keepEnded } from './ended-sessions.js'
import { MemorySessionStore } from './memory-session-store.js'
import { RotatingSigner } from './rotating-signer.js'

const SEVEN_DAYS_MS = 7 * 24 * 60 * 60 * 1000

/**
 * Registers @fastify/session with safe defaults, and @fastify/cookie unless the application has it.
 */
export async function registerSession (
  app: FastifyInstance,
  options: FastifySessionOptions,
  secure: boolean | 'auto'
): Promise<void> {
  if (!app.hasPlugin('@fastify/cookie')) await app.register(fastifyCookie)

  const { secret, algorithm } = options
  const store = options.store ?? memoryStore(app)
  keepEnded(store)
  await app.register(fastifySession, {
    cookieName: 'svc_session',
    saveUninitialized: false,
    rolling: false,
    ...options,
    secret: Array.isArray(secret) ? new RotatingSigner([...secret], algorithm) : secret,
    store,
    cookie: { path: '/', httpOnly: true, sameSite: 'lax', secure, maxAge: SEVEN_DAYS_MS, ...options.cookie }
  })
}

function memoryStore (app: FastifyInstance): MemorySessionStore {
  if (process.env.NODE_ENV === 'production') {
    app.log.warn('Sessions are kept in the memory of this process: ' +
      'a restart signs all users out, and other processes do not see the sessions. ' +
      'Set session.store to a store that all processes share, such as one for Redis.')
  }
  return new MemorySessionStore()
}
