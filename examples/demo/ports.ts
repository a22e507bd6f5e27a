import type { FastifyInstance } from 'fastify'

/** A setting or a port in use keeps a program from starting; the message says what to do. */
export class StartError extends Error {}

export function portFrom (setting: string, fallback: number): number {
  const port = Number(process.env[setting] || fallback)
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new StartError(`${setting} must be a port number from 1 to 65535, for example ${setting}=4000`)
  }
  return port
}

/** Listens on this machine only. */
export async function listen (server: FastifyInstance, port: number, setting: string): Promise<void> {
  try {
    await server.listen({ host: 'localhost', port })
  } catch (error) {
    const isInUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    if (!isInUse) throw error
    const example = `${setting}=${port === 4000 ? 5000 : 4000}`
    throw new StartError(`Port ${port} is in use; set ${setting} to a free one, for example ${example}`)
  }
}
