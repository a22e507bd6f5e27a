import type { FastifyReply, FastifyRequest } from 'fastify'
import { AuthError } from '../errors.js'
import { finishSignIn, pendingSignIn, startSignIn } from '../flows/external.js'
import { recentRecord } from '../flows/methods.js'
import { confirmedPrincipal } from '../current-user/refresh.js'
import { refuseForeignResource } from '../http/site.js'
import type { ExternalProvider, SignInParameters } from '../providers/provider.js'
import type { PendingSignIn } from '../session/pending-sign-ins.js'
import { answerFailure, nextAuthenticationStep } from './answers.js'
import type { RouteContext } from './context.js'
import {
  SECURITY, type SchemaTypes, errorNext, isChecked, next, operationIdOf, redirect, refusals, remember, tags,
  undocumented
} from './schema-parts.js'

const loginQuery = {
  type: 'object',
  properties: {
    next,
    error_next: errorNext,
    link: {
      type: 'string',
      enum: ['true', 'false'],
      description: '`true`: links the identity to the signed-in user, whose last authentication must be less than ' +
        'ten minutes old; from pages of this application only'
    },
    reauthenticate: {
      type: 'string',
      enum: ['true', 'false'],
      description: '`true`: the signed-in user reauthenticates; from pages of this application only'
    },
    remember,
    signed: {
      type: 'string',
      maxLength: 8192,
      description: 'What the application asks of the provider, as `app.auth.signInUrl` signed it'
    }
  }
} as const

const loginSchema = (provider: string) => ({
  tags,
  summary: `Start a sign-in at ${provider}`,
  operationId: operationIdOf(`${provider}/login`),
  security: SECURITY['signed-in-or-not'],
  querystring: loginQuery,
  response: {
    302: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'reauthenticate', 'rate_limited',
      'provider_error', 'provider_unavailable', 'unavailable'
    )
  }
}) as const

const callbackQuery = { type: 'object', properties: { code: {}, state: {}, iss: {}, error: {} } } as const

const callbackSchema = (provider: string) => ({
  tags,
  summary: `Finish a sign-in at ${provider}`,
  description: 'The redirect URI of the provider; its query is the authorization response (RFC 6749 section 4.1.2).',
  operationId: operationIdOf(`${provider}/callback`),
  security: SECURITY['signed-in'],
  querystring: callbackQuery,
  response: {
    302: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'reauthenticate', 'access_denied',
      'blocked', 'account_exists', 'already_linked', 'rate_limited', 'provider_error', 'provider_unavailable',
      'unavailable'
    )
  }
}) as const

/** Mounts the two routes of an external provider. */
export function mountExternalRoutes (context: RouteContext, provider: ExternalProvider): void {
  const { scope, site, prefix, redirectToBaseUrl, rules, signedRequests, pages, limits, mailer } = context
  const { name } = provider
  const routes = scope.withTypeProvider<SchemaTypes>()
  const redirectUri = `${site.baseUrl}${prefix}/${name}/callback`

  /** What the provider is asked for: by `signInUrl`, and by the purpose of the sign-in. */
  const askedOf = ({ signed, reauthenticate }: { signed?: string, reauthenticate?: string }): SignInParameters => {
    const asked = signed === undefined ? {} : signedRequests.verify(name, signed)
    if (reauthenticate !== 'true') return asked
    if (provider.provesAuthTime !== true) {
      throw new AuthError('invalid_request', {
        message: 'This provider does not prove when the user authenticated; reauthenticate by another method.'
      })
    }
    return { ...asked, prompt: 'login', maxAge: 0 }
  }

  /**
   * Answers a failure on the page of the start; the lack of an authentication on the page that asks
   * for it.
   */
  const fail = async (
    error: unknown,
    request: FastifyRequest,
    reply: FastifyReply,
    startedOn: string | null,
    next: string | null = null
  ): Promise<FastifyReply> => {
    const step = await nextAuthenticationStep(error, request, context, { next, needing: startedOn })
    const page = startedOn ?? pages.login(request)
    return answerFailure(request, reply, error, { page, step, signInAt: name })
  }

  const login = {
    schema: loginSchema(name),
    // Fastify would answer HEAD with the GET handler, which starts a sign-in, or uses one up.
    exposeHeadRoute: false,
    onRequest: [redirectToBaseUrl, refuseForeign, limits.start],
    errorHandler: async (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      fail(error, request, reply, pages.ofStart(request, Object(request.query).error_next))
  }
  const callback = {
    schema: callbackSchema(name),
    exposeHeadRoute: false,
    onRequest: [refuseForeign, limits.callback],
    errorHandler: async (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      fail(error, request, reply, pages.ofStart(request, undefined))
  }

  routes.get(`/${name}/login`, login, async (request, reply) => {
    const url = await startSignIn(request, provider, redirectUri, {
      next: pages.afterSuccess(request, request.query.next),
      remember: isChecked(request.query.remember),
      asked: askedOf(request.query),
      startedOn: pages.ofStart(request, request.query.error_next),
      purpose: await purposeOf(request, request.query, context)
    })
    return reply.redirect(url.href, 302)
  })

  routes.get(`/${name}/callback`, callback, async (request, reply) => {
    const parameters = new URLSearchParams(request.url.replace(/^[^?]*/, ''))
    const pending = await pendingSignIn(request, provider, parameters)
    try {
      const outbox = mailer?.outbox(request, reply) ?? null
      await finishSignIn(request, rules, { provider, redirectUri, parameters, pending, outbox })
    } catch (error) {
      return fail(error, request, reply, pending.startedOn, pending.next)
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
 * Returns what a sign-in is for. Only the signed-in user may link an identity or reauthenticate, by
 * a click in this application. To link one, they must have authenticated recently: an identity that
 * is linked signs in.
 */
async function purposeOf (
  request: FastifyRequest,
  { link, reauthenticate }: { link?: string, reauthenticate?: string },
  context: RouteContext
): Promise<PendingSignIn['purpose']> {
  const purpose = reauthenticate === 'true' ? 'reauthentication' : 'link'
  if (link !== 'true' && reauthenticate !== 'true') return 'sign-in'
  context.site.refuseForeignNavigation(request)
  if (purpose === 'link') await recentRecord(request, context.rules)
  else await confirmedPrincipal(request, context.rules.store)
  return purpose
}
