/** What an application may export, with its declarations: they name types of the package. */
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import authPlugin, {
  Accounts, type AuthPluginOptions, LocalIdentityProvider, MemoryAuthStore, OidcProvider, SqlAuthStore, openapiComponents, providersFromEnv
} from 'fastify-svc-auth'
import { Pages, de } from 'fastify-svc-auth/pages'
import { Passkeys } from 'fastify-svc-auth/passkeys'
import { all, breached, common } from 'fastify-svc-auth/passwords'
import { SecondFactor } from 'fastify-svc-auth/second-factor'
import { mailbox, signedIn, startProvider } from 'fastify-svc-auth/testing'

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

export const store = new SqlAuthStore(':memory:')
export const provider = new OidcProvider({ name: 'idp', discoveryUrl: 'https://idp.example', clientId: 'an-id', clientSecret: 'a secret' })
export const hooks = {
  onSignIn: async ({ principal, created }) => { if (created) console.log(principal.userId) },
  onLink: async ({ identity }) => console.log(identity.subject),
  onDelete: async ({ userId }) => console.log(userId)
} satisfies AuthPluginOptions
export const options = {
  ...hooks,
  local,
  store,
  providers: [provider],
  pages: new Pages({ name: 'Shop', languages: [de] }),
  passkeys: new Passkeys({ name: 'Shop' }),
  secondFactor: new SecondFactor({ issuer: 'Shop' })
} satisfies AuthPluginOptions
export const app = Fastify()
await app.register(authPlugin, options)
export const { auth, authProviders, localIdp } = app
export const {
  channel, requireUser, requireVerified, requireSecondFactor, requireClaims, requireRecent, requireBearer, requireBearerFor, refresh, anyOf
} = app.auth
export const admins = requireClaims({ role: 'admin' })
export const { sendMail, next } = mailbox()
export const testProvider = startProvider
export const headers = async () => signedIn(app)
