import { login } from '../flows/local.js'
import { reauthenticate } from '../flows/reauthentication.js'
import { register } from '../flows/registration.js'
import { wantsJson } from '../http/accept.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { RouteContext } from './context.js'
import { callerOf, email, filledIn, formAnswers, ownFields, refuseWhenBusy } from './password-forms.js'
import {
  FORM_OR_JSON, NOTHING, SESSION, type SchemaTypes, errorNext, isChecked, next, redirect, refusals, signedIn, tags
} from './schema-parts.js'

const registerSchema = {
  tags,
  summary: 'Register with e-mail and password, and sign in',
  operationId: 'authLocalRegister',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: {
      email,
      password: { type: 'string', description: '8 to 1024 bytes' },
      name: { type: 'string', maxLength: 1000, description: 'A display name' },
      role: { type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it' },
      email_verified: {
        anyOf: [{ type: 'boolean' }, { type: 'string', maxLength: 1000 }],
        description: 'A checkbox: an initial claim, if the application allows it'
      },
      next,
      error_next: errorNext
    },
    ...ownFields
  },
  response: {
    201: signedIn,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_email', 'weak_password', 'breached_password', 'invalid_state', 'unauthenticated',
      'cross_origin', 'claim_not_allowed', 'exists', 'rate_limited', 'busy', 'unavailable'
    )
  }
} as const

const loginSchema = {
  tags,
  summary: 'Sign in with e-mail and password',
  operationId: 'authLocalLogin',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email', 'password'],
    properties: { email, password: { type: 'string' }, next, error_next: errorNext },
    ...ownFields
  },
  response: {
    200: signedIn,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'blocked', 'rate_limited',
      'busy', 'unavailable'
    )
  }
} as const

const reauthenticateSchema = {
  tags,
  summary: 'Prove again who the signed-in user is',
  operationId: 'authLocalReauthenticate',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['password'],
    properties: { password: { type: 'string' }, next, error_next: errorNext }
  },
  response: {
    204: { type: 'null', description: 'Done: the session has a new id' },
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'rate_limited', 'busy',
      'unavailable'
    )
  }
} as const

/** Mounts the routes that register users, sign them in by password, and verify it again. */
export function mountPasswordRoutes (context: RouteContext, local: LocalIdentityProvider): void {
  const { scope, rules, pages, limits } = context
  const routes = scope.withTypeProvider<SchemaTypes>()
  const { goTo, done, answerOnPage } = formAnswers(pages)

  if (local.registration !== null) {
    routes.post('/local/register', {
      schema: registerSchema,
      onRequest: [refuseWhenBusy, limits.register],
      errorHandler: answerOnPage
    }, async (request, reply) => {
      const { email, password, name, role, email_verified: emailVerified, next } = request.body
      const principal = await register(request, local, rules, {
        email,
        password,
        name: filledIn(name?.trim()),
        role: filledIn(role),
        emailVerified: isChecked(emailVerified),
        caller: callerOf(request, reply)
      })
      return wantsJson(request) ? reply.code(201).send(principal) : goTo(request, reply, next)
    })
  }

  routes.post('/local/login', {
    schema: loginSchema,
    onRequest: [refuseWhenBusy, limits.login],
    preHandler: limits.account,
    errorHandler: answerOnPage
  }, async (request, reply) => {
    const { email, password, next } = request.body
    const principal = await login(request, local, rules, { email, password, caller: callerOf(request, reply) })
    return wantsJson(request) ? principal : goTo(request, reply, next)
  })

  routes.post('/local/reauthenticate', {
    schema: reauthenticateSchema,
    onRequest: [refuseWhenBusy, limits.reauthenticate],
    errorHandler: answerOnPage
  }, async (request, reply) => {
    const { password, next } = request.body
    await reauthenticate(request, local, rules.store, { password, caller: callerOf(request, reply) })
    return done(request, reply, next)
  })
}
