import type { Act } from '../../core/act.js'
import { answerWithStatus } from '../../core/failure-answer.js'
import { WHILE_IMPERSONATING } from '../../core/acting.js'
import type { Feature } from '../../core/feature.js'
import { allowCaching } from '../published.js'
import { FORM_OR_JSON, type SchemaTypes, objectOf, operation } from '../../core/schema.js'
import { bearerGuards } from './bearer.js'
import { mountMetadata } from './metadata.js'
import { issueToken, verifyToken } from './user-tokens.js'

const issueSchema = operation({
  summary: 'Issue a short-lived token for the signed-in user',
  operationId: 'authLocalToken',
  user: 'signed-in',
  answers: {
    200: objectOf('A Bearer token (RFC 6750)', {
      token: { type: 'string' },
      token_type: { type: 'string', enum: ['Bearer'] },
      expires_in: { type: 'integer', description: 'Seconds' }
    })
  },
  refuses: ['invalid_request', 'invalid_claims', 'unauthenticated', 'sso_required', 'cross_origin', 'unavailable']
})

const verifySchema = {
  ...operation({
    summary: 'Verify a token and decode its claims',
    operationId: 'authLocalVerifyToken',
    user: 'anyone',
    answers: { 200: { type: 'object', description: 'The decoded claims', additionalProperties: true } },
    refuses: ['invalid_request', 'invalid_token', 'cross_origin', 'unavailable']
  }),
  consumes: FORM_OR_JSON,
  body: { type: 'object', required: ['token'], properties: { token: { type: 'string' } } }
} as const

const jwksSchema = operation({
  summary: 'The public keys that verify tokens',
  description: 'A JWK Set (RFC 7517 section 5), for a `TokenVerifier` or any other library.',
  operationId: 'authLocalJwks',
  user: 'anyone',
  answers: {
    200: {
      ...objectOf('The public keys', {
        keys: {
          type: 'array',
          items: {
            type: 'object',
            required: ['kty', 'crv', 'x', 'alg', 'use', 'kid'],
            properties: Object.fromEntries(
              ['kty', 'crv', 'x', 'y', 'alg', 'use', 'kid'].map(name => [name, { type: 'string' }])
            )
          }
        }
      }),
      headers: { 'Cache-Control': { type: 'string', description: 'Keys may be kept for five minutes' } }
    }
  },
  refuses: ['unavailable']
})

const issue: Act = {
  when: ({ local }) => local !== null,
  mount ({ scope, auth }) {
    scope.post('/local/token', { schema: issueSchema, errorHandler: answerWithStatus }, async request => ({
      token: await issueToken(auth, request), token_type: 'Bearer', expires_in: auth.local?.ttl
    }))
  }
}

/** Verifies a token for programs that cannot. */
const verify: Act = {
  when: ({ local }) => local !== null,
  mount ({ scope, auth }) {
    const options = { schema: verifySchema, errorHandler: answerWithStatus }
    scope.withTypeProvider<SchemaTypes>().post('/local/verify-token', options, async request =>
      verifyToken(auth, request.body.token))
  }
}

/** Publishes the keys that verify tokens; a secret has none. */
const publishKeys: Act = {
  when: ({ local }) => local?.jwks != null,
  mount ({ scope, auth: { local } }) {
    scope.get('/local/jwks.json', {
      schema: jwksSchema,
      onSend: async (_request, reply) => allowCaching(reply, 'public, max-age=300'),
      exposeHeadRoute: false,
      config: WHILE_IMPERSONATING
    }, async () => local?.jwks)
  }
}

export const TOKENS: Feature = {
  acts: [issue, verify, publishKeys], api: bearerGuards, mountDocuments: mountMetadata
}
