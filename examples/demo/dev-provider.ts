import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import formbody from '@fastify/formbody'
import Fastify, { type FastifyInstance } from 'fastify'
import { OidcProvider } from 'fastify-svc-auth'
import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider'
import { html } from './html.js'
import { document } from './pages/frame.js'
import { sendPage, setUpSite } from './site.js'

interface Person {
  email: string
  name: string
}

const SCOPES = 'openid email profile'
const ONE_HOUR = 3600

/**
 * An OpenID provider for development: it asks people who they want to be, and believes them.
 *
 * @param url where it will listen
 * @param appUrl the application that signs people in with it
 * @returns the server, not listening yet, and the provider to register with fastify-svc-auth
 */
export async function buildDevProvider ({ url, appUrl }: { url: string, appUrl: string }): Promise<{ server: FastifyInstance, provider: OidcProvider }> {
  if (process.env.NODE_ENV === 'production') throw new Error('the development provider lets anybody be anybody; it does not run with NODE_ENV=production')

  const client = { id: 'example', secret: randomBytes(32).toString('hex') }
  const people = new Map<string, Person>()
  const issuer = openIdProvider(url, { ...client, redirectUri: `${appUrl}/auth/dev/callback` }, people)
  const server = await interactionServer(issuer, people, appUrl)
  const provider = new OidcProvider({
    name: 'dev',
    discoveryUrl: `${url}/.well-known/openid-configuration`,
    clientId: client.id,
    clientSecret: client.secret,
    allowInsecureRequests: true
  })
  return { server, provider }
}

function openIdProvider (url: string, client: { id: string, secret: string, redirectUri: string }, people: ReadonlyMap<string, Person>): Provider {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const issuer: Provider = new Provider(url, {
    adapter: MemoryAdapter,
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [client.redirectUri] }],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    // The cookie of the provider's own session belongs to a path that no page has: every sign-in asks anew who one is.
    cookies: { keys: [randomBytes(32)], long: { path: '/never', httpOnly: true, sameSite: 'lax' } },
    ttl: { AccessToken: ONE_HOUR, IdToken: ONE_HOUR, Interaction: ONE_HOUR, Session: ONE_HOUR, Grant: ONE_HOUR },

    async findAccount (_context, sub) {
      const person = people.get(sub)
      if (person === undefined) return undefined
      return { accountId: sub, claims: async () => ({ sub, ...person, email_verified: true }) }
    },

    // "Continue" on the sign-in page is the consent too.
    async loadExistingGrant ({ oidc: { client, session } }) {
      const grant = new issuer.Grant({ clientId: client?.clientId, accountId: session?.accountId })
      grant.addOIDCScope(SCOPES)
      await grant.save()
      return grant
    },

    async renderError (context, { error }) {
      context.type = 'html'
      context.body = document('This did not work', html`<p>The provider answered <code>${error}</code>. Go back and start the sign-in again.</p>`).toString()
    }
  })
  return issuer
}

/** The sign-in page; whatever else is asked for goes to the OpenID provider. */
async function interactionServer (issuer: Provider, people: Map<string, Person>, appUrl: string): Promise<FastifyInstance> {
  const server = Fastify({ logger: { level: 'warn' } })
  setUpSite(server, [appUrl])

  server.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const { statusCode = 500 } = error
    if (statusCode >= 500) request.log.error(error)
    return sendPage(reply, document('This did not work', html`<p>The sign-in has ended or the form was not filled in. Go back and start again.</p>`), statusCode)
  })

  await server.register(async pages => {
    await pages.register(formbody)

    pages.get<{ Params: { uid: string } }>('/interaction/:uid', async (request, reply) => {
      const { uid } = await issuer.interactionDetails(request.raw, reply.raw)
      return sendPage(reply, signInPage(`/interaction/${uid}`))
    })

    const body = { type: 'object', required: ['email', 'name'], properties: { email: { type: 'string', pattern: '.@.' }, name: { type: 'string', minLength: 1 } } }
    pages.post<{ Body: Person }>('/interaction/:uid', { schema: { body } }, async (request, reply) => {
      const person = { email: request.body.email.trim().toLowerCase(), name: request.body.name.trim() }
      const sub = createHash('sha256').update(person.email).digest('hex')
      people.set(sub, person)
      return reply.redirect(await issuer.interactionResult(request.raw, reply.raw, { login: { accountId: sub } }), 303)
    })

    pages.post('/interaction/:uid/cancel', async (request, reply) => {
      return reply.redirect(await issuer.interactionResult(request.raw, reply.raw, { error: 'access_denied', error_description: 'the person cancelled' }), 303)
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

function signInPage (path: string) {
  return document('Who do you want to be?', html`
    <p>This provider is for development. It checks nothing and exists only as long as the example runs.</p>
    <form method="post" action="${path}">
      <label>E-mail <input type="email" name="email" value="grace@example.com" required></label>
      <label>Name <input name="name" value="Grace Hopper" required></label>
      <button>Continue</button>
      <button class="quiet" formaction="${path}/cancel" formnovalidate>Cancel</button>
    </form>`)
}

/** What oidc-provider keeps, in memory; its own memory adapter warns about itself at every start. */
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
