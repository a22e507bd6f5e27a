import type { FastifyInstance } from 'fastify'
import { AuthError, type LocalIdentityProvider, type TokenClaims, type User } from 'fastify-svc-auth'
import { type LinkToken, linkToken } from './links.js'
import { invitationLinkPage, invitationPage } from './pages/links.js'
import { ROLES, type RoleForm, roleForm } from './roles.js'
import { sendPage } from './site.js'
import type { UsedTokens } from './used-tokens.js'

/** What the tokens of invitations are for; they are good for nothing else. */
const INVITATION = { purpose: 'invitation' }
const ONE_HOUR = 60 * 60

interface Invitation {
  inviter: User
  role: string
  claims: TokenClaims
}

/** Administrators make links that give a role to whoever accepts first, within the hour. */
export function mountInvitations (app: FastifyInstance, { baseUrl, local, usedTokens }: { baseUrl: string, local: LocalIdentityProvider, usedTokens: UsedTokens }): void {
  const { refresh, requireUser } = app.auth
  const forUsers = { preHandler: [refresh, requireUser] }
  const forAdmins = { preHandler: [refresh, app.auth.requireClaims({ role: 'admin' })] }

  app.post<{ Body: RoleForm }>('/admin/invitations', { ...forAdmins, schema: { body: roleForm } }, async ({ principal, body: { role } }, reply) => {
    if (principal === null) throw new AuthError('unauthenticated')
    const token = await local.issueIdToken(principal.userId, { offers: role }, ONE_HOUR, INVITATION)
    return sendPage(reply, invitationLinkPage({ principal, role, link: `${baseUrl}/invitation?token=${token}` }))
  })

  app.get<{ Querystring: LinkToken }>('/invitation', { ...forUsers, schema: { querystring: linkToken } }, async ({ principal, query: { token } }, reply) => {
    const { inviter, role } = await read(token)
    return sendPage(reply, invitationPage({ principal, inviter, role, token }))
  })

  app.post<{ Body: LinkToken }>('/invitation', { ...forUsers, schema: { body: linkToken } }, async (request, reply) => {
    const { principal } = request
    if (principal === null) throw new AuthError('unauthenticated')
    const { role, claims } = await read(request.body.token)
    usedTokens.use(claims)
    await app.auth.grant(principal.userId, { role })
    await refresh(request)
    return reply.redirect('/', 303)
  })

  /** Whoever is no administrator any more has no roles to give, whatever he signed while he was. */
  async function read (token: string): Promise<Invitation> {
    const claims = await local.verifyIdToken(token, INVITATION)
    const inviter = await app.auth.findUser({ userId: claims.sub })
    const role = ROLES.find(role => role === claims.offers)
    if (inviter?.claims.role !== 'admin' || role === undefined) throw new AuthError('invalid_token')
    return { inviter, role, claims }
  }
}
