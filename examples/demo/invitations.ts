import type { FastifyInstance } from 'fastify'
import { AuthError, type LocalIdentityProvider, type TokenClaims, type User } from 'fastify-svc-auth'
import { html } from './html.js'
import { type LinkToken, linkToken } from './links.js'
import { ROLES, type RoleForm, administratorsOnly, roleForm } from './roles.js'
import { redirectDone, sendPage } from './site.js'
import type { UsedTokens } from './used-tokens.js'

/** The purpose of the tokens of invitations. A token with a purpose is valid for nothing else. */
const INVITATION = { purpose: 'invitation' }
const ONE_HOUR = 60 * 60

interface InvitationsOptions {
  baseUrl: string
  local: LocalIdentityProvider
  usedTokens: UsedTokens
}

interface Invitation {
  inviter: User
  role: string
  claims: TokenClaims
}

/** Lets administrators make links that give a role to the first user who accepts, within an hour. */
export function mountInvitations (app: FastifyInstance, { baseUrl, local, usedTokens }: InvitationsOptions): void {
  const { refresh, requireUser } = app.auth
  const forUsers = { preHandler: [refresh, requireUser] }
  const forAdmins = { preHandler: administratorsOnly(app) }

  const role = { ...forAdmins, schema: { body: roleForm } }
  app.post<{ Body: RoleForm }>('/admin/invitations', role, async (request, reply) => {
    const principal = app.auth.user(request)
    const { role } = request.body
    const token = await local.issueIdToken(principal.userId, { offers: role }, ONE_HOUR, INVITATION)
    return sendPage(reply, 'Your invitation', html`
    <p>The first user who accepts this link has the role <strong>${role}</strong>. It is valid for an hour.</p>
    <pre>${baseUrl}/invitation?token=${token}</pre>
    <p><a class="button quiet" href="/admin">Back to the users</a></p>`)
  })

  const page = { ...forUsers, schema: { querystring: linkToken } }
  app.get<{ Querystring: LinkToken }>('/invitation', page, async ({ principal, query: { token } }, reply) => {
    const { inviter, role } = await read(token)
    const present = principal?.claims.role
    return sendPage(reply, 'You are invited', html`
    <form method="post" action="/invitation">
      <p><strong>${inviter.email ?? inviter.name}</strong> offers you the role <strong>${role}</strong>.</p>
      ${present !== undefined && html`<p>It takes the place of your role <strong>${String(present)}</strong>.</p>`}
      <input type="hidden" name="token" value="${token}">
      <button>Accept</button>
    </form>`)
  })

  const form = { ...forUsers, schema: { body: linkToken } }
  app.post<{ Body: LinkToken }>('/invitation', form, async (request, reply) => {
    const { role, claims } = await read(request.body.token)
    usedTokens.use(claims)
    await app.auth.grant(app.auth.user(request).userId, { role })
    return redirectDone(reply, '/', 'accepted')
  })

  /** Verifies an invitation. It ends when the inviter stops being an administrator. */
  async function read (token: string): Promise<Invitation> {
    const claims = await local.verifyIdToken(token, INVITATION)
    const inviter = await app.auth.findUser({ userId: claims.sub })
    const role = ROLES.find(role => role === claims.offers)
    if (inviter?.claims.role !== 'admin' || role === undefined) throw new AuthError('invalid_token')
    return { inviter, role, claims }
  }
}
