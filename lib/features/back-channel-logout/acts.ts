import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Act, recordFailure } from '../../core/act.js'
import { FORM_OR_JSON, type SchemaTypes, operation, operationIdOf } from '../../core/schema.js'
import { AuthError, OptionsError } from '../../errors.js'
import type { ExternalProvider } from '../../providers/provider.js'
import { WITHOUT_SESSION } from '../../session/cookies.js'
import { type ProviderRoute, providerRoutes } from '../identities/provider-route.js'
import { type LogoutProvider, endByLogoutToken } from './back-channel-logout.js'

const MAX_BYTES = 16_384

const FAILURE = {
  type: 'object',
  description: 'A failure, as the specification says',
  required: ['error'],
  properties: { error: { type: 'string' } }
} as const

const schemaOf = ({ path, title }: ProviderRoute) => {
  const answers = { 200: { type: 'null', description: 'The sessions have ended, or there were none' } }
  const described = operation({
    summary: `End the sessions of a user who has signed out at ${title}`,
    description: 'OpenID Connect Back-Channel Logout 1.0 section 2.5.',
    operationId: operationIdOf(`${path}/backchannel-logout`),
    user: 'anyone',
    answers
  })
  return {
    ...described,
    response: { ...answers, 400: FAILURE, 429: FAILURE, 503: FAILURE },
    consumes: FORM_OR_JSON,
    body: {
      type: 'object',
      required: ['logout_token'],
      properties: { logout_token: { type: 'string', minLength: 1, maxLength: MAX_BYTES } }
    }
  } as const
}

/** What providers ask when a session there ends. Such a request has no cookie, and no origin. */
export const LOGOUT_ACTS: readonly Act[] = [{
  mount ({ scope, auth }) {
    for (const route of providerRoutes(auth).filter(({ hasLogout }) => hasLogout)) {
      if (auth.listedSessions !== null && auth.listedSessions.endAtProvider === undefined) {
        throw new OptionsError(`store.sessions needs endAtProvider: ${route.title} has backChannelLogout`)
      }
      scope.withTypeProvider<SchemaTypes>().post(`/${route.path}/backchannel-logout`, {
        schema: schemaOf(route),
        config: WITHOUT_SESSION,
        bodyLimit: MAX_BYTES,
        preHandler: auth.limits.token,
        errorHandler: answerLogoutFailure
      }, async (request, reply) => {
        const provider = await route.providerOf(request)
        if (!tellsOfLogouts(provider)) throw new AuthError('not_found')
        await endByLogoutToken(auth, request, provider, request.body.logout_token)
        return reply.code(200).send()
      })
    }
  }
}]

function tellsOfLogouts (provider: ExternalProvider): provider is ExternalProvider & LogoutProvider {
  return provider.backChannelLogout === true
}

/** Answers with the code of the specification, or with one by which the provider tries again. */
function answerLogoutFailure (error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { statusCode, code } = recordFailure(request, reply, error)
  const isRefused = statusCode < 500 && code !== 'rate_limited'
  const status = isRefused ? 400 : code === 'rate_limited' ? 429 : 503
  return reply.code(status).send({ error: isRefused ? 'invalid_request' : 'temporarily_unavailable' })
}
