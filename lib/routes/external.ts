import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { finishLinking, finishSignIn, pendingSignIn, startSignIn } from '../flows/external.js'
import { confirmedPrincipal } from '../flows/refresh.js'
import type { ResolvedOptions } from '../options.js'
import { refuseForeignNavigation, refuseForeignResource } from '../http/own-origin.js'
import type { ExternalProvider } from '../providers/provider.js'
import { answerFailure, errorPage, loginPage, nextPath, startPage } from './answers.js'
import type { RateLimits } from './limits.js'
import { type SchemaTypes, externalCallback, externalLogin, undocumented } from './schemas.js'

/** The two routes of an external provider. */
export function mountExternalRoutes (scope: FastifyInstance, provider: ExternalProvider, options: ResolvedOptions, limits: RateLimits): void {
  const { baseUrl, prefix } = options
  const { name } = provider
  const routes = scope.withTypeProvider<SchemaTypes>()
  const redirectUri = `${baseUrl}${prefix}/${name}/callback`

  const settings: RouteSettings = {
    // HEAD must not start or use up anything, and Fastify would answer it with the GET handler.
    exposeHeadRoute: false,
    errorHandler: (error, request, reply) => answerFailure(request, reply, error, { page: errorPage(request, options), signInAt: name })
  }

  const refuseForeign = async (request: FastifyRequest) => { refuseForeignResource(request) }

  const login: RouteSettings = {
    ...settings,
    errorHandler: (error, request, reply) => answerFailure(request, reply, error, {
      page: errorPage(request, options, Object(request.query).error_next),
      signInAt: name
    })
  }

  routes.get(`/${name}/login`, { ...login, onRequest: [refuseForeign, limits.start], schema: externalLogin(name) }, async (request, reply) => {
    const url = await startSignIn(request, provider, redirectUri, {
      next: nextPath(request, options, request.query.next),
      asked: request.query.signed === undefined ? {} : options.signedRequests.verify(name, request.query.signed),
      startedOn: startPage(request, options, request.query.error_next),
      linkTo: request.query.link === 'true' ? await linkTo(request, options) : null
    })
    return reply.redirect(url.href, 302)
  })

  routes.get(`/${name}/callback`, { ...settings, onRequest: [refuseForeign, limits.callback], schema: externalCallback(name) }, async (request, reply) => {
    const parameters = new URLSearchParams(request.url.replace(/^[^?]*/, ''))
    const pending = await pendingSignIn(request, provider, parameters)
    const finish = pending.linkTo === null ? finishSignIn : finishLinking
    try {
      await finish(request, options, { provider, redirectUri, parameters, pending })
    } catch (error) {
      return answerFailure(request, reply, error, { page: pending.startedOn ?? loginPage(request, options), signInAt: name })
    }
    return reply.redirect(pending.next, 302)
  })

  routes.route({
    ...settings,
    method: scope.supportedMethods.filter(method => method !== 'GET'),
    url: `/${name}/callback`,
    schema: undocumented,
    handler: async (_request, reply) => {
      reply.header('Allow', 'GET')
      throw new AuthError('invalid_request', { statusCode: 405, message: 'A callback is a GET request.' })
    }
  })
}

type RouteSettings = Pick<Parameters<FastifyInstance['route']>[0], 'exposeHeadRoute' | 'errorHandler'>

/** To whom an identity will be added: to him who asks for it himself, by a click on a page of this application. */
async function linkTo (request: FastifyRequest, options: ResolvedOptions): Promise<string> {
  refuseForeignNavigation(request, options)
  const { userId } = await confirmedPrincipal(request, options.store)
  return userId
}
