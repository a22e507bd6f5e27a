import type { FastifyInstance } from 'fastify'
import type { ExternalProvider } from 'fastify-svc-auth'
import { accountPage } from './pages/account.js'
import { confirmPage } from './pages/confirm.js'
import { type PageQuery, pathAfter, redirectDone, sendPage, takeForms } from './site.js'

/** The time after which a change needs a reauthentication, as in the routes of the plugin. */
const TEN_MINUTES = 600

interface AccountOptions {
  providers: readonly ExternalProvider[]
  sendsMails: boolean
}

/** The account page and what users change there: name, sign-in methods, sessions. */
export async function mountAccount (
  scope: FastifyInstance,
  { providers, sendsMails }: AccountOptions
): Promise<void> {
  const { auth } = scope
  await takeForms(scope)
  // A change of the claims shows on the next request.
  scope.addHook('preHandler', auth.refresh)
  const forUsers = { preHandler: auth.requireUser }

  scope.get<{ Querystring: PageQuery }>('/', async (request, reply) => {
    const { principal, authentication, query: { error, done } } = request
    const user = principal === null ? null : await auth.findUser({ userId: principal.userId })
    if (principal === null || user === null) return reply.redirect('/login')
    const links = await auth.links(principal.userId)
    const sessions = await auth.sessions(principal.userId, { current: request })
    const isRecent = authentication !== null && Date.now() - authentication.at.getTime() < TEN_MINUTES * 1000
    const methods = { links, providers: scope.authProviders }
    const security = { authentication, sessions, isRecent }
    return sendPage(reply, accountPage({ principal, user, ...methods, ...security, sendsMails, error, done }))
  })

  const name = { ...forUsers, schema: { body: fields({ name: { type: 'string', maxLength: 100 } }) } }
  scope.post<{ Body: { name: string } }>('/name', name, async (request, reply) => {
    await auth.updateUser(auth.user(request).userId, { name: request.body.name.trim() || null })
    return redirectDone(reply, '/', 'renamed')
  })

  scope.post('/sign-out-everywhere', forUsers, async (request, reply) => {
    await auth.signOutEverywhere(auth.user(request).userId, { except: request })
    return redirectDone(reply, '/', 'signed_out_everywhere')
  })

  const unlink = {
    preHandler: auth.requireRecent({ within: TEN_MINUTES }),
    schema: { body: fields({ provider: { type: 'string' } }) }
  }
  scope.post<{ Body: { provider: string } }>('/unlink', unlink, async (request, reply) => {
    await auth.unlink(auth.user(request).userId, request.body.provider, { except: request })
    return redirectDone(reply, '/', 'unlinked')
  })

  // Those that say when the user authenticated; others sign in a user whose browser is still signed in to them.
  const proving = providers.filter(({ provesAuthTime }) => provesAuthTime === true).map(({ name }) => name)
  scope.get<{ Querystring: PageQuery }>('/confirm', forUsers, async (request, reply) => {
    const principal = auth.user(request)
    const links = await auth.links(principal.userId)
    const linked = links.map(({ provider }) => provider)
    return sendPage(reply, confirmPage({
      principal,
      hasPassword: linked.includes('local'),
      providers: proving.filter(name => linked.includes(name)),
      next: pathAfter(request.query, '/'),
      error: request.query.error
    }))
  })
}

/** The schema of a form that needs all of its fields. */
function fields (properties: Record<string, object>): object {
  return { type: 'object', required: Object.keys(properties), properties }
}
