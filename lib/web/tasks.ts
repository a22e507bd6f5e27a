import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'

/** Something that is done inside a request, behind the hooks that load its session. */
export type Task = (request: FastifyRequest) => Promise<void>

const HEADER = 'svc-auth-task'

/**
 * Tasks by the key that the request carries. Only `fastify-svc-auth/testing` adds tasks: in
 * production there are none.
 */
const waiting = new Map<string, Task>()

/** The path at which each application runs tasks, by its `app.auth`: one that no route has. */
const paths = new WeakMap<object, string>()

/** Lets an application run tasks under the prefix of the plugin's routes. */
export function acceptTasks (auth: object, prefix: string): void {
  paths.set(auth, `${prefix}/svc-auth-task`)
}

/**
 * Returns the path at which an application runs tasks; undefined for an `app.auth` that this copy
 * of the package did not make.
 */
export function taskPath (auth: object): string | undefined {
  return paths.get(auth)
}

/** Sends a request that runs a task. The task waits for no longer than that. */
export async function withTask<T> (task: Task, send: (headers: Record<string, string>) => Promise<T>): Promise<T> {
  const key = randomUUID()
  waiting.set(key, task)
  try {
    return await send({ [HEADER]: key })
  } finally {
    waiting.delete(key)
  }
}

/** The task of a request; undefined without one. */
export function taskOf ({ headers }: FastifyRequest): Task | undefined {
  return waiting.get(String(headers[HEADER]))
}
