/** What an application may export, with its declarations: they name types of the package. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Accounts, LocalIdentityProvider, MemoryAuthStore, openapiComponents, providersFromEnv } from 'fastify-svc-auth'
import { all, breached, common } from 'fastify-svc-auth/passwords'

export const usersOf = async ({ auth }: FastifyInstance) => auth.users({ blocked: false })
export const accountOf = async ({ auth }: FastifyInstance, userId: string) => ({
  user: await auth.findUser({ userId }),
  links: await auth.links(userId),
  sessions: await auth.sessions(userId),
  factors: await auth.factors(userId)
})
export const linkOf = async ({ auth }: FastifyInstance, token: string) => auth.openMailToken(token)
export const editorsOf = ({ auth }: FastifyInstance) => auth.anyOf(auth.requireUser, auth.requireClaims({ role: 'editor' }))
export const signedInAs = ({ principal, authentication, token }: FastifyRequest) => ({ principal, authentication, token })

export const known = breached()
export const check = all(common(), known)
export const local = new LocalIdentityProvider({ secret: 'a secret of more than 32 characters', password: { check } })
export const providers = providersFromEnv()
export const accounts = new Accounts(new MemoryAuthStore())
export const apiDocument = { components: openapiComponents }
