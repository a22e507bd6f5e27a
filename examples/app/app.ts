import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { AuthError, type ExternalProvider, LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { adminPage, claimsPage, loginPage, problemPage } from './pages.js'
import { sendPage, setUpSite } from './site.js'

export interface AppOptions {
  /** Where people find the application, such as `http://localhost:3000`. */
  baseUrl: string
  providers: readonly ExternalProvider[]
}

interface PageQuery {
  error?: unknown
  next?: unknown
}

/** The whole application: sign-in is one `register`, the rest is pages. */
export async function buildApp ({ baseUrl, providers }: AppOptions): Promise<FastifyInstance> {
  const app = Fastify({ logger: { level: 'warn' } })
  setUpSite(app)
  setUpProblemPages(app)

  await app.register(authPlugin, {
    baseUrl,
    providers,
    local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
    store: new SqlAuthStore() // file: LOCAL_AUTH_DB
  }) // session secret: SVC_SESSION_SECRET

  app.get<{ Querystring: PageQuery }>('/login', async (request, reply) => {
    const { principal, query: { error, next } } = request
    return sendPage(reply, loginPage({ principal, providers: app.authProviders, next: typeof next === 'string' ? next : '/', error }))
  })

  app.get<{ Querystring: PageQuery }>('/', async (request, reply) => {
    const { principal, query: { error } } = request
    return principal === null ? reply.redirect('/login') : sendPage(reply, claimsPage({ principal, error }))
  })

  await app.register(async admin => {
    admin.addHook('preHandler', app.auth.requireClaims({ role: 'admin' }))
    admin.get('/admin', async (request, reply) => sendPage(reply, adminPage(request.principal)))
  })

  return app
}

/** Guards throw; how a refusal looks is up to the application. */
function setUpProblemPages (app: FastifyInstance): void {
  app.setErrorHandler<Error & { statusCode?: number }>((error, { principal, url, log }, reply) => {
    const { statusCode = 500 } = error
    if (statusCode >= 500) log.error(error)
    return sendPage(reply, problemPage({ code: error instanceof AuthError ? error.code : undefined, path: url, principal }), statusCode)
  })
  app.setNotFoundHandler(({ principal, url }, reply) => sendPage(reply, problemPage({ code: 'not_found', path: url, principal }), 404))
}
