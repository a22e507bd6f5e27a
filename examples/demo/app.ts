import type { Database } from 'better-sqlite3'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import authPlugin, { AuthError, type ExternalProvider, LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { mountAccount } from './account.js'
import { mountAdmin } from './admin.js'
import { mountApiDocs } from './api-docs.js'
import { mountInvitations } from './invitations.js'
import { setUpLinks } from './links.js'
import { loginPage } from './pages/login.js'
import { problemPage } from './pages/problem.js'
import { mountPreAuth } from './pre-auth.js'
import { type PageQuery, sendPage, setUpSite } from './site.js'
import { UsedTokens } from './used-tokens.js'
import type { UserList } from './user-list.js'

export interface AppOptions {
  /** Where people find the application, such as `http://localhost:3000`. */
  baseUrl: string
  providers: readonly ExternalProvider[]
  /** Where used links are noted. */
  database: Database
  users: UserList
}

/** The whole application: sign-in is one `register`, the rest is pages. */
export async function buildApp ({ baseUrl, providers, database, users }: AppOptions): Promise<FastifyInstance> {
  const app = Fastify({ logger: { level: process.env.LOG_LEVEL ?? 'warn', serializers } })
  const local = new LocalIdentityProvider() // secret: LOCAL_IDP_SECRET
  setUpSite(app)
  setUpProblemPages(app)
  await mountApiDocs(app, baseUrl)

  await app.register(authPlugin, {
    baseUrl,
    providers,
    local,
    store: new SqlAuthStore(), // file: LOCAL_AUTH_DB
    loginPage: '/login'
  }) // session secret: SVC_SESSION_SECRET

  app.get<{ Querystring: PageQuery }>('/login', async (request, reply) => {
    const { principal, query: { error, next } } = request
    return sendPage(reply, loginPage({ principal, providers: app.authProviders, next: typeof next === 'string' ? next : '/', error }))
  })

  await app.register(mountAccount)
  await app.register(async admin => mountAdmin(admin, users))
  await app.register(async links => {
    const usedTokens = new UsedTokens(database)
    await setUpLinks(links)
    mountPreAuth(links, local, usedTokens)
    mountInvitations(links, { baseUrl, local, usedTokens })
  })

  return app
}

/** Queries of ours hold tokens, which the log must not. */
const serializers = {
  req: ({ method, url, ip }: FastifyRequest) => ({ method, url: url.replace(/\?.*/s, ''), remoteAddress: ip })
}

/** Guards throw; how a refusal looks is up to the application. */
function setUpProblemPages (app: FastifyInstance): void {
  app.setErrorHandler<Error & { statusCode?: number }>((error, { principal, url, log }, reply) => {
    const { statusCode = 500 } = error
    if (statusCode >= 500) log.error(error)
    return sendPage(reply, problemPage({ code: error instanceof AuthError ? error.code : undefined, principal, path: url }), statusCode)
  })
  app.setNotFoundHandler(({ principal, url }, reply) => sendPage(reply, problemPage({ code: 'not_found', principal, path: url }), 404))
}
