import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import formbody from '@fastify/formbody'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { OidcProvider } from 'fastify-svc-auth'
import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider'
import { CLIENT_ID, devClient } from './dev-client.js'
import { type Html, html } from './html.js'
import { sendDocument, setUpSite } from './site.js'

interface AdmittedUser {
  email: string
  name: string
}

interface DevProvider {
  server: FastifyInstance
  provider: OidcProvider
  /** Makes the same provider in another process: `devClient(url, clientSecret)`. */
  clientSecret: string
}

type People = Map<string, AdmittedUser>

interface Client {
  id: string
  secret: string
  redirectUri: string
}

const SCOPES = 'openid email profile'
const ONE_HOUR = 3600

/**
 * Makes an OpenID provider for development: it asks users who they want to be, and verifies nothing.
 *
 * @param url where it will listen
 * @param appUrl the application that signs users in with it
 * @returns the server, not listening yet, and the provider to register with fastify-svc-auth
 */
export async function buildDevProvider ({ url, appUrl }: { url: string, appUrl: string }): Promise<DevProvider> {
  if (process.env.NODE_ENV === 'production') {
    throw new Error('the development provider lets anyone sign in as any user; it does not run with NODE_ENV=production')
  }

  const client = { id: CLIENT_ID, secret: randomBytes(32).toString('hex') }
  const people = new Map<string, AdmittedUser>()
  const issuer = openIdProvider(url, { ...client, redirectUri: `${appUrl}/auth/dev-provider/callback` }, people)
  const server = await interactionServer(issuer, people, appUrl)
  return { server, provider: devClient(url, client.secret), clientSecret: client.secret }
}

function openIdProvider (url: string, client: Client, people: ReadonlyMap<string, AdmittedUser>): Provider {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const issuer: Provider = new Provider(url, {
    adapter: MemoryAdapter,
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [client.redirectUri] }],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    // No page has the path of the session cookie, so the provider asks at every sign-in.
    cookies: { keys: [randomBytes(32)], long: { path: '/never', httpOnly: true, sameSite: 'lax' } },
    ttl: { AccessToken: ONE_HOUR, IdToken: ONE_HOUR, Interaction: ONE_HOUR, Session: ONE_HOUR, Grant: ONE_HOUR },

    async findAccount (_context, sub) {
      const person = people.get(sub)
      if (person === undefined) return undefined
      return { accountId: sub, claims: async () => ({ sub, ...person, email_verified: true }) }
    },

    // "Continue" on the sign-in page is the consent as well.
    async loadExistingGrant ({ oidc: { client, session } }) {
      const grant = new issuer.Grant({ clientId: client?.clientId, accountId: session?.accountId })
      grant.addOIDCScope(SCOPES)
      await grant.save()
      return grant
    },

    async renderError (context, { error }) {
      context.body = `The provider answered ${error}. Go back and start the sign-in again.`
    }
  })
  return issuer
}

/** Serves the sign-in page; the OpenID provider answers all other requests. */
async function interactionServer (issuer: Provider, people: People, appUrl: string): Promise<FastifyInstance> {
  const server = Fastify({ logger: { level: 'warn' } })
  setUpSite(server, [appUrl])

  server.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const { statusCode = 500 } = error
    if (statusCode >= 500) request.log.error(error)
    return sendProviderPage(reply.code(statusCode), 'This did not work', html`
    <p>The sign-in has ended or the form was not filled in. Go back and start again.</p>`)
  })

  await server.register(async pages => {
    await pages.register(formbody)

    pages.get<{ Params: { uid: string } }>('/interaction/:uid', async (request, reply) => {
      const { uid } = await issuer.interactionDetails(request.raw, reply.raw)
      return sendProviderPage(reply, 'Who do you want to be?', html`
    <p>This provider is for development: it verifies nothing, and forgets its users when the demonstration stops.</p>
    <form method="post" action="/interaction/${uid}">
      <label>E-mail <input type="email" name="email" value="grace@example.com" required></label>
      <label>Name <input name="name" value="Grace Hopper" required></label>
      <button>Continue</button>
      <button class="quiet" formaction="/interaction/${uid}/cancel" formnovalidate>Cancel</button>
    </form>`)
    })

    const properties = { email: { type: 'string', pattern: '.@.' }, name: { type: 'string', minLength: 1 } }
    const body = { type: 'object', required: ['email', 'name'], properties }
    pages.post<{ Body: AdmittedUser }>('/interaction/:uid', { schema: { body } }, async (request, reply) => {
      const person = { email: request.body.email.trim().toLowerCase(), name: request.body.name.trim() }
      const sub = createHash('sha256').update(person.email).digest('hex')
      people.set(sub, person)
      const result = { login: { accountId: sub } }
      return reply.redirect(await issuer.interactionResult(request.raw, reply.raw, result), 303)
    })

    pages.post('/interaction/:uid/cancel', async (request, reply) => {
      const result = { error: 'access_denied', error_description: 'the user cancelled' }
      return reply.redirect(await issuer.interactionResult(request.raw, reply.raw, result), 303)
    })
  })

  await server.register(async rest => {
    const handle = issuer.callback()
    // The OpenID provider reads bodies itself.
    rest.removeAllContentTypeParsers()
    rest.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
    rest.all('/*', async (request, reply) => {
      reply.hijack()
      await handle(request.raw, reply.raw)
    })
  })

  return server
}

function sendProviderPage (reply: FastifyReply, title: string, content: Html): FastifyReply {
  return sendDocument(reply, { title, header: html`Development provider`, content })
}

/** Keeps the data of oidc-provider in memory; its own memory adapter prints a warning at every start. */
class MemoryAdapter implements Adapter {
  readonly #entries = new Map<string, AdapterPayload>()

  async upsert (id: string, payload: AdapterPayload): Promise<void> {
    this.#entries.set(id, payload)
  }

  async find (id: string): Promise<AdapterPayload | undefined> {
    return this.#entries.get(id)
  }

  async findByUid (uid: string): Promise<AdapterPayload | undefined> {
    return [...this.#entries.values()].find(entry => entry.uid === uid)
  }

  async findByUserCode (): Promise<undefined> {}

  async consume (id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry !== undefined) entry.consumed = Math.floor(Date.now() / 1000)
  }

  async destroy (id: string): Promise<void> {
    this.#entries.delete(id)
  }

  async revokeByGrantId (grantId: string): Promise<void> {
    for (const [id, entry] of this.#entries) {
      if (entry.grantId === grantId) this.#entries.delete(id)
    }
  }
}
