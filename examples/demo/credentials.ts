import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from 'fastify-svc-auth'
import { type CredentialView, deletePage, emailPage, passwordPage } from './pages/credentials.js'
import { type PageQuery, sendPage } from './site.js'

const TEN_MINUTES = 600

/**
 * The pages that change a user's password and e-mail and delete the account. The plugin takes their
 * forms.
 */
export async function mountCredentials (scope: FastifyInstance): Promise<void> {
  const { auth } = scope
  const recent = auth.requireRecent({ within: TEN_MINUTES })

  /** The form asks for the password of a user who has one; another user reauthenticates first. */
  const passwordOrRecent = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!await hasPassword(auth.user(request).userId)) await recent(request, reply)
  }
  const proven = { preHandler: [auth.requireUser, passwordOrRecent] }

  scope.get<{ Querystring: PageQuery }>('/password', proven, async (request, reply) => {
    return sendPage(reply, passwordPage(await viewOf(request)))
  })

  // The form is behind the guard too, so that the proof comes before the new address is typed.
  scope.get<{ Querystring: PageQuery }>('/email', { preHandler: recent }, async (request, reply) => {
    return sendPage(reply, emailPage(await viewOf(request)))
  })

  scope.get<{ Querystring: PageQuery }>('/delete-account', proven, async (request, reply) => {
    return sendPage(reply, deletePage(await viewOf(request)))
  })

  async function hasPassword (userId: string): Promise<boolean> {
    const links = await auth.links(userId)
    return links.some(({ provider }) => provider === 'local')
  }

  async function viewOf (request: FastifyRequest<{ Querystring: PageQuery }>): Promise<CredentialView> {
    const principal = auth.user(request)
    const user = await auth.findUser({ userId: principal.userId })
    if (user === null) throw new AuthError('unauthenticated')
    return { principal, user, hasPassword: await hasPassword(principal.userId), error: request.query.error }
  }
}
