import type { FastifyRequest } from 'fastify'

/** A sign-in that a request has completed. */
export interface CompletedSignIn {
  readonly userId: string
  /** Whether the same request has signed the user in before, and its answer was lost. */
  readonly isRepeated: boolean
}

const completed = new WeakMap<FastifyRequest, CompletedSignIn>()

/** Notes a sign-in, for what is done with the answer of its request. */
export function noteSignIn (request: FastifyRequest, signIn: CompletedSignIn): void {
  completed.set(request, signIn)
}

/** Returns the sign-in that a request has completed, the last one of several; null for none. */
export function completedSignIn (request: FastifyRequest): CompletedSignIn | null {
  return completed.get(request) ?? null
}
