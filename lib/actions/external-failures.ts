import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthContext } from '../context.js'
import { providerFailure } from '../providers/failures.js'
import { answerFailure, nextAuthenticationStep } from '../web/answers.js'

/** Answers a failure on the page of the start, or where the authentication that lacks is asked. */
export async function failAtProvider (
  auth: AuthContext,
  provider: string,
  { error, request, reply }: { error: unknown, request: FastifyRequest, reply: FastifyReply },
  { startedOn, next }: { startedOn: string | null, next: string | null }
): Promise<FastifyReply> {
  const step = await nextAuthenticationStep(auth, request, error, { next, needing: startedOn })
  const page = startedOn ?? auth.pages.login(request)
  return answerFailure(request, reply, error, { page, step, signInAt: provider })
}

/** Turns every error of a provider, also of one of the application, into a failure of it. */
export async function callProvider<T> (ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw providerFailure(error)
  }
}
