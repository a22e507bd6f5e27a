import { randomUUID } from 'node:crypto'
import diagnostics from 'node:diagnostics_channel'
import type { FastifyReply, FastifyRequest, InjectOptions, LightMyRequestResponse } from 'fastify'
import { Accounts } from '../accounts/accounts.js'
import { Auth } from '../features/app-auth/auth.js'
import type { AuthenticationMethod } from '../authentication.js'
import type { GrantableClaims, IdentityClaims } from '../claims.js'
import { canonicalEmail } from '../email.js'
import { AuthError, OptionsError } from '../errors.js'
import type { LocalIdentityProvider } from '../features/local/local-identity-provider.js'
import { creating } from '../hooks.js'
import { recordIn } from '../session/record.js'
import { sessionsOf } from '../session/request-sessions.js'
import { cookiesAfter } from './cookies.js'

/** An application with the plugin, on any of Node's servers. */
export interface TestedApp {
  /** As the plugin decorates it. */
  readonly auth: Auth
  /** As the plugin decorates it. */
  readonly authProviders: readonly string[]
  /** As the plugin decorates it. */
  readonly localIdp: LocalIdentityProvider | null
  /** Resolves when all plugins are loaded. */
  ready (): PromiseLike<unknown>
  /** Sends a request without a network. */
  inject (options: InjectOptions): Promise<LightMyRequestResponse>
}

/** The user that {@link signedIn} signs in: a user of the store by `userId`, else a new one. */
export interface SignedInUser {
  /** A user of the store, in place of a new one. */
  userId?: string | undefined
  /** Default: an address that no other user has. */
  email?: string | undefined
  /** Default true, except for a user with a password: at registration no address is verified. */
  emailVerified?: boolean | undefined
  /** Default: none. */
  name?: string | undefined
  /** The sign-in method; default `local` with that option, else the first of `providers`. */
  provider?: string | undefined
  /** Granted before the sign-in. */
  claims?: GrantableClaims | undefined
  /**
   * When the user signed in, for tests of `requireRecent`; default now. The session itself begins
   * now.
   */
  signedInAt?: Date | undefined
  /**
   * How the user authenticated, such as `['password', 'totp']` for a guard that requires a second
   * factor; default `['application']`. No factor is asked for or added to the user.
   */
  methods?: readonly AuthenticationMethod[] | undefined
  /** Headers of the request that signs in, for hooks of the application, such as `x-tenant`. */
  headers?: Record<string, string> | undefined
}

/** Headers of a request by a signed-in user, for `app.inject`. */
export interface SignedInHeaders {
  /** The session cookie, and others that the application set beside it. */
  cookie: string
  /** Those that were passed to {@link signedIn}, and no others. */
  [name: string]: string
}

/** A hash of 32 random bytes, which no password has. */
const UNKNOWN_PASSWORD = '$argon2id$v=19$m=8,t=1,p=1$lUI1uJiFBPTdwIZpBqmBhw$b0yVmkFs9vZNnKQyt7d0iWcC0bmaAeN7cxW2q8b4T0k'

/**
 * Signs a user in inside a request of the application, as `app.auth.signIn` does: it asks
 * `onSignIn`, and the session plugin of the application writes the session into its store.
 *
 * @returns headers for `app.inject`
 * @throws what refuses the sign-in: an error of `onSignIn`; AuthError `invalid_email`, `exists`,
 * `invalid_claims`, `unknown_user`; OptionsError when another hook of the application answers
 *
 * @example
 * ```ts
 * const headers = await signedIn(app, { claims: { role: 'admin' } })
 * const response = await app.inject({ url: '/admin', headers })
 * ```
 */
export async function signedIn (app: TestedApp, user: SignedInUser = {}): Promise<SignedInHeaders> {
  await app.ready()
  if (!(app.auth instanceof Auth)) {
    throw new OptionsError('signedIn takes an application that has registered fastify-svc-auth, ' +
      'of the same copy of the package as fastify-svc-auth/testing')
  }
  const userId = user.userId ?? await makeUser(app, user)
  if (user.claims !== undefined) await app.auth.grant(userId, user.claims)

  let signIn: Promise<void> | null = null
  const response = await insideRequest(app, user.headers, request => {
    signIn = app.auth.signIn(request, userId, { secondFactor: 'skip' }).then(async () => rewriteProofs(request, user))
    return signIn
  })
  // What refused the sign-in, in place of the answer of the route.
  await signIn
  if (response.statusCode !== 200) {
    throw new OptionsError('signedIn could not sign in, because a hook of the application answered ' +
      `${response.statusCode} ${response.body}; pass what it asks for, such as signedIn(app, { headers })`)
  }
  return { ...user.headers, cookie: cookiesAfter(response) }
}

/** Names a request, so that the handler of no other one is told. */
const HEADER = 'svc-auth-test'

/** Fastify tells of each handler here before it runs. */
const HANDLERS = 'tracing:fastify.request.handler:start'

/**
 * Runs a task inside a request of an application, one that reads the session: behind the hooks that
 * load it, before the answer is sent.
 */
async function insideRequest (
  app: TestedApp, headers: Record<string, string> | undefined, task: (request: FastifyRequest) => Promise<void>
): Promise<LightMyRequestResponse> {
  const key = randomUUID()
  const runTask = (message: unknown): void => {
    const { request, reply } = message as { request: FastifyRequest, reply: FastifyReply }
    if (request.headers[HEADER] !== key) return
    const send = reply.send.bind(reply)
    reply.send = payload => {
      reply.send = send
      const answer = (): void => { send(payload) }
      task(request).then(answer, answer)
      return reply
    }
  }
  diagnostics.subscribe(HANDLERS, runTask)
  try {
    const asked = { ...headers, accept: 'application/json', [HEADER]: key }
    return await app.inject({ url: `${app.auth.prefix}/session`, headers: asked })
  } finally {
    diagnostics.unsubscribe(HANDLERS, runTask)
  }
}

/** Writes into a session that its user signed in at another time or by other methods. */
async function rewriteProofs (
  request: FastifyRequest,
  { signedInAt, methods }: Pick<SignedInUser, 'signedInAt' | 'methods'>
): Promise<void> {
  const record = recordIn(request.session)
  if (record === null || (signedInAt === undefined && methods === undefined)) return
  const at = signedInAt?.getTime() ?? record.at
  const proofs = (methods ?? record.methods.map(({ method }) => method)).map(method => ({ method, at }))
  await sessionsOf(request).saveRecord(request, { ...record, at, methods: proofs })
}

async function makeUser (app: TestedApp, user: SignedInUser): Promise<string> {
  const userId = randomUUID()
  const [firstProvider = 'local'] = app.authProviders
  const { provider = app.localIdp === null ? firstProvider : 'local', name, email = `${userId}@example.com` } = user
  const isLocal = provider === 'local'
  const { emailVerified = !isLocal } = user
  const address = canonicalEmail(email) ?? email
  const claims: IdentityClaims = {
    sub: userId,
    email: address,
    email_verified: emailVerified,
    ...(name !== undefined && { name })
  }
  const made = await new Accounts(app.auth.store).createUser({
    userId,
    email: address,
    emailVerified,
    name: name ?? null,
    claims: {},
    isNew: true,
    link: { provider, subject: isLocal ? address : userId, claims },
    ...(isLocal && { passwordHash: UNKNOWN_PASSWORD })
  }, creating(app.auth, { method: isLocal ? 'password' : 'provider' }))
  if (made === null) throw new AuthError('exists')
  return userId
}
