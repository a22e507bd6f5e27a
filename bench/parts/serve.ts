import type { FastifyInstance } from 'fastify'

/** Makes an application. */
export type Make = (...settings: string[]) => Promise<FastifyInstance>

/** The program of servers: makes the application that is named by its first argument, and serves until it is let go. */
export async function serve (makers: Record<string, Make>): Promise<void> {
  const [name = '', ...settings] = process.argv.slice(2)
  const app = await makers[name]?.(...settings)
  if (app === undefined) throw new TypeError(`there is no "${name}", only ${Object.keys(makers).join(', ')}`)
  process.once('disconnect', () => app.close())
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }))
}
