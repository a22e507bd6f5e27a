import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'

/** Applications in one process that sweep guests. */
export interface GuestSweeps {
  /** Starts a sweep, in an application of its own: one application sweeps once a minute. */
  begin (): Promise<void>
  /** Resolves when all sweeps are done, to the guests whose end the application was told. */
  end (): Promise<string[]>
  close (): Promise<void>
}

export interface GuestApp {
  app: FastifyInstance
  /** How many sweeps have begun. */
  begun: () => number
  close: () => Promise<void>
}

const MINUTE = 60_000

export async function startGuestApp (target: string, told: (userId: string) => void = () => {}): Promise<GuestApp> {
  const store = new SqlAuthStore(target)
  const find = store.abandonedGuests.bind(store)
  let begun = 0
  Object.assign(store, {
    async abandonedGuests (...asked: Parameters<typeof find>) {
      begun++
      return find(...asked)
    }
  })
  const app = Fastify()
  await app.register(authPlugin, {
    store,
    local: localProvider({ registration: {} }),
    session: { secret: SESSION_SECRET },
    rateLimit: false,
    guests: {},
    // What a sign-in asks the application takes its time, in which its session ends.
    onSignIn: async () => wait(Math.random() * 40),
    async onDelete ({ userId }) {
      told(userId)
      await wait(Math.random() * 4)
    }
  })
  app.post('/basket', async request => app.auth.signInGuest(request))
  await app.ready()
  return {
    app,
    begun: () => begun,
    async close () {
      await app.close()
      await store.close()
    }
  }
}

export function sweepsOn (target: string): GuestSweeps {
  const told: string[] = []
  const ready = Array.from({ length: 4 }, async () => startGuestApp(target, userId => { told.push(userId) }))
  const apps: GuestApp[] = []
  return {
    async begin () {
      const next = await (ready.pop() ?? startGuestApp(target, userId => { told.push(userId) }))
      apps.push(next)
      await new Browser(next.app).post('/basket')
    },
    async end () {
      const { now } = Date
      Date.now = () => now() + MINUTE
      // Another one begins when the first one is done.
      for (const { app, begun } of apps) {
        while (begun() < 2) {
          await new Browser(app).post('/basket')
          await wait(10)
        }
      }
      Date.now = now
      return told
    },
    async close () { for (const app of [...apps, ...await Promise.all(ready)]) await app.close() }
  }
}

// As a program: sweeps the database of its first argument.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let sweeps = sweepsOn(String(process.argv[2]))
  process.on('message', async message => {
    if (message === 'begin') {
      await sweeps.begin()
      process.send?.('begun')
    } else {
      const told = await sweeps.end()
      await sweeps.close()
      sweeps = sweepsOn(String(process.argv[2]))
      process.send?.(told)
    }
  })
  process.once('disconnect', () => sweeps.close())
  process.send?.('ready')
}
