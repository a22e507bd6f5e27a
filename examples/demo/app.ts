import { STATUS_CODES } from 'node:http'
import type { Database } from 'better-sqlite3'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import authPlugin, { AuthError, type ExternalProvider, LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { ApiKeys } from 'fastify-svc-auth/api-keys'
import { Connections } from 'fastify-svc-auth/connections'
import { OAuthServer } from 'fastify-svc-auth/oauth-server'
import { Pages } from 'fastify-svc-auth/pages'
import { Passkeys } from 'fastify-svc-auth/passkeys'
import { SecondFactor } from 'fastify-svc-auth/second-factor'
import { mountAdmin } from './admin.js'
import { mountApiDocs } from './api-docs.js'
import { assistantOf, mountAssistant } from './assistant.js'
import { mountConnections } from './connections.js'
import { keepHistory } from './history.js'
import { mountHome } from './home.js'
import { html } from './html.js'
import { mountInvitations } from './invitations.js'
import { setUpLinks } from './links.js'
import { type DevMailbox, mountMailbox } from './mailbox.js'
import { keepNotes, mountNotes } from './notes.js'
import { mountScripts } from './scripts.js'
import { sendPage, setUpSite } from './site.js'
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
  verify: 'later' | 'required' | 'first'
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

/** Makes a server the whole application: sign-in and accounts are one `register`, the rest is the application's. */
export async function mountApp (
  app: FastifyInstance,
  { baseUrl, providers, database, mailbox, verify }: AppOptions
): Promise<void> {
  // secret: LOCAL_IDP_SECRET
  const local = new LocalIdentityProvider({
    registration: { verify }, sendMail: mailbox?.sendMail, signInByMail: mailbox !== null
  })
  const notes = keepNotes(database)
  setUpSite(app)
  setUpProblemPages(app)
  await mountApiDocs(app, baseUrl)

  await app.register(authPlugin, {
    baseUrl,
    providers,
    local,
    store: new SqlAuthStore(), // file: LOCAL_AUTH_DB
    session: { remember: { days: 30 } }, // secret: SVC_SESSION_SECRET
    secondFactor: new SecondFactor({ // dataSecret: SVC_AUTH_DATA_SECRET
      issuer: 'fastify-svc-auth',
      required: ({ principal }) => principal.claims.role === 'admin',
      trustedBrowser: { days: 30 }
    }),
    passkeys: new Passkeys({ name: 'fastify-svc-auth', createOnSignIn: true }),
    oauthServer: new OAuthServer({
      resources: { [`${baseUrl}/api`]: { scopes: { profile: 'See your name and your e-mail address' } } },
      clients: [assistantOf(baseUrl)]
    }),
    apiKeys: new ApiKeys({ prefix: 'demo', scopes: { profile: 'See your name and your e-mail address' }, selfService: true }),
    connections: new Connections(),
    impersonation: { allow: ({ actor, user }) => actor.claims.role === 'admin' && user.claims.role !== 'admin' },
    guests: { days: 30 },
    onGuest: notes.move,
    onDelete: notes.remove,
    pages: new Pages({
      name: 'fastify-svc-auth',
      logo: '/icon.svg',
      stylesheet: '/auth.css',
      links: [{ label: 'Home', href: '/' }, { label: 'Notes', href: '/notes' }, ...(mailbox === null ? [] : [{ label: 'Mailbox', href: '/mailbox' }])]
    })
  })

  mountHome(app, baseUrl)
  mountAssistant(app, baseUrl)
  mountScripts(app)
  if (mailbox !== null) mountMailbox(app, mailbox)
  await app.register(mountNotes, { notes })
  await app.register(mountConnections)
  await app.register(mountAdmin, { historyOf: keepHistory(database) })
  await app.register(async links => {
    const usedTokens = new UsedTokens(database)
    await setUpLinks(links)
    mountInvitations(links, { baseUrl, local, usedTokens })
  })
}

/** Shows a page for what guards and routes throw. */
function setUpProblemPages (app: FastifyInstance): void {
  app.setErrorHandler<Error & { statusCode?: number }>((error, { log }, reply) => {
    const { statusCode = 500 } = error
    // A link has signed in a user with a second factor.
    if (error instanceof AuthError && error.code === 'second_factor_required') {
      return reply.redirect('/auth/local/second-factor', 303)
    }
    if (statusCode >= 500) log.error(error)
    return sendProblem(reply.code(statusCode), error instanceof AuthError ? error : undefined)
  })
  app.setNotFoundHandler((_request, reply) => sendProblem(reply.code(404), new AuthError('not_found')))
}

async function sendProblem (reply: FastifyReply, error?: AuthError): Promise<FastifyReply> {
  const { principal } = reply.request
  return sendPage(reply, STATUS_CODES[reply.statusCode] ?? 'Error', html`
    <p>${error?.message ?? 'Something went wrong. Check what you entered, and try again.'}</p>
    ${error?.code === 'forbidden' && html`
      <p>This page is for users whose claim <code>role</code> is <code>admin</code>. To become one, run this and reload;
      then set up a second factor:</p>
      <pre>npx tsx lib/command/main.ts grant ${principal?.claims.email ?? 'your@e-mail.example'} --claim role=admin</pre>`}
    <p><a class="button quiet" href="/">Home</a></p>`)
}
