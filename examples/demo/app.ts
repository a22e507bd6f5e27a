import type { Database } from 'better-sqlite3'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import authPlugin, {
  AuthError, type ExternalProvider, LocalIdentityProvider, type RegistrationPolicy, SqlAuthStore
} from 'fastify-svc-auth'
import { mountAccount } from './account.js'
import { mountAdmin } from './admin.js'
import { mountApiDocs } from './api-docs.js'
import { mountCredentials } from './credentials.js'
import { mountInvitations } from './invitations.js'
import { setUpLinks } from './links.js'
import { type DevMailbox, mountMailbox } from './mailbox.js'
import { REMEMBERED_DAYS, loginPage } from './pages/login.js'
import { problemPage } from './pages/problem.js'
import { mountPreAuth } from './pre-auth.js'
import { type PageQuery, pathAfter, sendPage, setUpSite } from './site.js'
import { UsedTokens } from './used-tokens.js'

export interface AppOptions {
  /** The public URL of the application, such as `http://localhost:3000`. */
  baseUrl: string
  providers: readonly ExternalProvider[]
  /** Where the application keeps what is not about its users. */
  database: Database
  /** Where mails go; null for an application without mails. */
  mailbox: DevMailbox | null
  /** When the address of a new account is confirmed. */
  verify: Required<RegistrationPolicy>['verify']
}

/** Logs paths without their queries, which hold tokens. */
export const LOGGER = {
  level: process.env.LOG_LEVEL ?? 'warn',
  serializers: {
    req: ({ method, url, ip }: FastifyRequest) => ({ method, url: url.replace(/\?.*/s, ''), remoteAddress: ip })
  }
}

/** The demonstration on a server of its own. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const app = Fastify({ logger: LOGGER })
  await mountApp(app, options)
  return app
}

/** Makes a server the whole application: sign-in is one `register`, the rest is pages. */
export async function mountApp (
  app: FastifyInstance,
  { baseUrl, providers, database, mailbox, verify }: AppOptions
): Promise<void> {
  const sendsMails = mailbox !== null
  // secret: LOCAL_IDP_SECRET
  const local = new LocalIdentityProvider({ registration: { verify }, sendMail: mailbox?.sendMail })
  setUpSite(app)
  setUpProblemPages(app)
  await mountApiDocs(app, baseUrl)

  await app.register(authPlugin, {
    baseUrl,
    providers,
    local,
    store: new SqlAuthStore(), // file: LOCAL_AUTH_DB
    session: { remember: { days: REMEMBERED_DAYS } }, // secret: SVC_SESSION_SECRET
    loginPage: '/login',
    reauthenticatePage: '/confirm',
    ...(sendsMails && { changePasswordPage: '/password' })
  })

  app.get<{ Querystring: PageQuery }>('/login', async (request, reply) => {
    const { principal, query: { error, done } } = request
    const next = pathAfter(request.query, '/')
    return sendPage(reply, loginPage({ principal, providers: app.authProviders, sendsMails, verify, next, error, done }))
  })

  if (mailbox !== null) {
    mountMailbox(app, mailbox)
    await app.register(mountCredentials)
  }
  await app.register(async account => mountAccount(account, { providers, sendsMails }))
  await app.register(mountAdmin)
  await app.register(async links => {
    const usedTokens = new UsedTokens(database)
    await setUpLinks(links)
    mountPreAuth(links, local, usedTokens)
    mountInvitations(links, { baseUrl, local, usedTokens })
  })
}

/** Shows a page for what guards and routes throw. */
function setUpProblemPages (app: FastifyInstance): void {
  app.setErrorHandler<Error & { statusCode?: number }>((error, { principal, url, log }, reply) => {
    const { statusCode = 500 } = error
    if (statusCode >= 500) log.error(error)
    const code = error instanceof AuthError ? error.code : undefined
    return sendPage(reply, problemPage({ code, principal, path: url }), statusCode)
  })
  app.setNotFoundHandler(({ principal, url }, reply) => {
    return sendPage(reply, problemPage({ code: 'not_found', principal, path: url }), 404)
  })
}
