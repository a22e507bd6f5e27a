import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { finishLinking, finishSignIn, pendingSignIn, startSignIn } from '../flows/external.js'
import { confirmedPrincipal } from '../flows/refresh.js'
import { refuseForeignNavigation, refuseForeignResource } from '../http/own-origin.js'
import type { ExternalProvider } from '../providers/provider.js'
import { answerFailure } from './answers.js'
import type { RouteContext } from './context.js'
import {
  SESSION, SESSION_OR_NOTHING, type SchemaTypes, errorNext, next, redirect, refusals, tags, undocumented
} from './schema-parts.js'

const loginSchema = (provider: string) => ({
  tags,
  summary: `Start a sign-in at ${provider}`,
  operationId: operationId('login', provider),
  security: SESSION_OR_NOTHING,
  querystring: {
    type: 'object',
    properties: {
      next,
      error_next: errorNext,
      link: {
        type: 'string',
        enum: ['true', 'false'],
        description: '`true`: links the identity to the signed-in user; from pages of this application only'
      },
      signed: {
        type: 'string',
        maxLength: 8192,
        description: 'What the application asks of the provider, as `app.auth.signInUrl` signed it'
      }
    }
  },
  response: {
    302: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'rate_limited', 'provider_error',
      'provider_unavailable', 'unavailable'
    )
  }
}) as const

const callbackSchema = (provider: string) => ({
  tags,
  summary: `Finish a sign-in at ${provider}`,
  description: 'The redirect URI of the provider; its query is the authorization response (RFC 6749 section 4.1.2).',
  operationId: operationId('callback', provider),
  security: SESSION,
  querystring: {
    type: 'object',
    properties: { code: {}, state: {}, iss: {}, error: {} }
  },
  response: {
    302: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'access_denied', 'account_exists',
      'already_linked', 'rate_limited', 'provider_error', 'provider_unavailable', 'unavailable'
    )
  }
}) as const

/** Mounts the two routes of an external provider. */
export function mountExternalRoutes (context: RouteContext, provider: ExternalProvider): void {
  const { scope, baseUrl, prefix, rules, signedRequests, pages, limits } = context
  const { name } = provider
  const routes = scope.withTypeProvider<SchemaTypes>()
  const redirectUri = `${baseUrl}${prefix}/${name}/callback`

  const answerOn = (pageFor: (request: FastifyRequest) => string | null) =>
    (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      answerFailure(request, reply, error, { page: pageFor(request), signInAt: name })

  const login = {
    schema: loginSchema(name),
    // Fastify would answer HEAD with the GET handler, which starts a sign-in, or uses one up.
    exposeHeadRoute: false,
    onRequest: [refuseForeign, limits.start],
    errorHandler: answerOn(request => pages.forError(request, Object(request.query).error_next))
  }
  const callback = {
    schema: callbackSchema(name),
    exposeHeadRoute: false,
    onRequest: [refuseForeign, limits.callback],
    errorHandler: answerOn(request => pages.forError(request))
  }

  routes.get(`/${name}/login`, login, async (request, reply) => {
    const url = await startSignIn(request, provider, redirectUri, {
      next: pages.afterSuccess(request, request.query.next),
      asked: request.query.signed === undefined ? {} : signedRequests.verify(name, request.query.signed),
      startedOn: pages.ofStart(request, request.query.error_next),
      linkTo: request.query.link === 'true' ? await linkTo(request, context) : null
    })
    return reply.redirect(url.href, 302)
  })

  routes.get(`/${name}/callback`, callback, async (request, reply) => {
    const parameters = new URLSearchParams(request.url.replace(/^[^?]*/, ''))
    const pending = await pendingSignIn(request, provider, parameters)
    const finish = pending.linkTo === null ? finishSignIn : finishLinking
    try {
      await finish(request, rules, { provider, redirectUri, parameters, pending })
    } catch (error) {
      const page = pending.startedOn ?? pages.login(request)
      return answerFailure(request, reply, error, { page, signInAt: name })
    }
    return reply.redirect(pending.next, 302)
  })

  routes.route({
    method: scope.supportedMethods.filter(method => method !== 'GET'),
    url: `/${name}/callback`,
    schema: undocumented,
    errorHandler: callback.errorHandler,
    handler: async (_request, reply) => {
      reply.header('Allow', 'GET')
      throw new AuthError('invalid_request', { statusCode: 405, message: 'A callback is a GET request.' })
    }
  })
}

async function refuseForeign (request: FastifyRequest): Promise<void> {
  refuseForeignResource(request)
}

/**
 * Returns the user that an identity will be added to: the signed-in user, who clicked a link of
 * this application.
 */
async function linkTo (request: FastifyRequest, context: RouteContext): Promise<string> {
  refuseForeignNavigation(request, context)
  const { userId } = await confirmedPrincipal(request, context.rules.store)
  return userId
}

function operationId (action: string, provider: string): string {
  const name = provider.split('-').map(capitalized).join('')
  return `auth${name}${capitalized(action)}`
}

function capitalized (word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
