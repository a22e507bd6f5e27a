import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { completedSignIn } from '../../core/completed-sign-ins.js'
import type { AuthContext } from '../../core/context.js'
import type {} from './known-browsers.js'

/**
 * Tells users of sign-ins from browsers that are not known. A hook of the application, because its
 * own routes sign users in as well.
 */
export function watchBrowsers (app: FastifyInstance, auth: AuthContext): void {
  if (auth.parts.knownBrowsers === null) return
  app.addHook('onSend', async (request, reply) => noteBrowser(auth, request, reply))
}

async function noteBrowser (
  { accounts, mailer, parts: { knownBrowsers } }: AuthContext, request: FastifyRequest, reply: FastifyReply
): Promise<void> {
  const signIn = completedSignIn(request)
  if (signIn === null || knownBrowsers === null) return
  const { userId, isRepeated } = signIn
  try {
    if (!isRepeated && !knownBrowsers.knows(request, userId)) {
      const noted = await accounts.noteBrowser(userId)
      if (noted === null) return
      if (!noted.isFirst) mailer?.outbox(request, reply).notice('new-browser', noted.user, 'devices')
    }
    knownBrowsers.remember(request, reply, userId)
  } catch (error) {
    // The user is signed in: the next sign-in tries again.
    request.log.warn({ err: error, userId }, 'the browser of a sign-in could not be noted')
  }
}
