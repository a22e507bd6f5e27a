import type { FastifyInstance } from 'fastify'
import { finishSignIn, pendingSignIn, startSignIn } from '../flows/external.js'
import type { ResolvedOptions } from '../options.js'
import type { ExternalProvider } from '../providers/provider.js'
import { answerFailure, nextPath, refererPath } from './answers.js'
import { type SchemaTypes, externalCallback, externalLogin } from './schemas.js'
import { logSerializers } from './scope.js'

/** The two routes of an external provider. */
export function mountExternalRoutes (scope: FastifyInstance, provider: ExternalProvider, options: ResolvedOptions): void {
  const { baseUrl, prefix, store } = options
  const routes = scope.withTypeProvider<SchemaTypes>()
  const redirectUri = `${baseUrl}${prefix}/${provider.name}/callback`

  // HEAD must not start or use up anything, and Fastify would answer it with the GET handler.
  const settings = { exposeHeadRoute: false, logSerializers }

  routes.get(`/${provider.name}/login`, { ...settings, schema: externalLogin(provider.name) }, async (request, reply) => {
    const next = nextPath(request, baseUrl, request.query.next)
    const url = await startSignIn(request, provider, redirectUri, { next, startedOn: refererPath(request, baseUrl) })
    return reply.redirect(url.href, 302)
  })

  routes.get(`/${provider.name}/callback`, { ...settings, schema: externalCallback(provider.name) }, async (request, reply) => {
    const parameters = new URL(request.url, 'http://callback.invalid').searchParams
    const pending = await pendingSignIn(request, provider, parameters)
    try {
      await finishSignIn(request, provider, store, redirectUri, parameters, pending)
    } catch (error) {
      return answerFailure(request, reply, error, pending.startedOn)
    }
    return reply.redirect(pending.next, 302)
  })
}
