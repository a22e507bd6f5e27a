import type { FastifyReply, FastifyRequest } from 'fastify'
import { login } from '../flows/local.js'
import { sendVerification } from '../flows/mail-links.js'
import { reauthenticate } from '../flows/reauthentication.js'
import { register } from '../flows/registration.js'
import { wantsJson } from '../http/accept.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { Outbox } from '../local/outbox.js'
import type { RouteContext } from './context.js'
import { callerOf, email, filledIn, formAnswers, ownFields, refuseWhenBusy } from './password-forms.js'
import {
  FORM_OR_JSON, NOTHING, SESSION, type SchemaTypes, checkbox, errorNext, isChecked, next, redirect, refusals, remember,
  signedIn, tags
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
        ...checkbox,
        description: 'A checkbox: an initial claim, if the application allows it'
      },
      remember,
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

/** With `registration.verify: 'required'`. */
const registerToConfirmSchema = {
  ...registerSchema,
  summary: 'Register with e-mail and password; the link in a mail confirms the address',
  response: {
    202: { type: 'null', description: 'Registered: the user signs in once their address is confirmed' },
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_email', 'weak_password', 'breached_password', 'cross_origin', 'claim_not_allowed',
      'exists', 'rate_limited', 'busy', 'unavailable'
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
    properties: { email, password: { type: 'string' }, remember, next, error_next: errorNext },
    ...ownFields
  },
  response: {
    200: signedIn,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'blocked', 'unverified',
      'rate_limited', 'busy', 'unavailable'
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
  const { scope, rules, pages, limits, mailer } = context
  const routes = scope.withTypeProvider<SchemaTypes>()
  const { goTo, done, answerOnPage } = formAnswers(pages)
  const isRequired = local.registration?.verify === 'required'
  const outboxOf = (request: FastifyRequest, reply: FastifyReply): Outbox | null =>
    mailer?.outbox(request, reply) ?? null

  if (local.registration !== null && local.registration.verify !== 'first') {
    routes.post('/local/register', {
      schema: isRequired ? registerToConfirmSchema : registerSchema,
      // A registration sends a mail, and one mailbox may have many addresses.
      onRequest: [refuseWhenBusy, limits.register, ...mailer === null ? [] : [limits.mail]],
      errorHandler: answerOnPage
    }, async (request, reply) => {
      const { email, password, name, role, email_verified: emailVerified, remember, next } = request.body
      const outbox = outboxOf(request, reply)
      const principal = await register(request, local, rules, {
        email,
        password,
        name: filledIn(name?.trim()),
        role: filledIn(role),
        emailVerified: isChecked(emailVerified),
        remember: isChecked(remember),
        caller: callerOf(request, reply),
        confirmation: { isRequired, send: user => sendVerification(user, outbox) }
      })
      if (!wantsJson(request)) return goTo(request, reply, next)
      return principal === null ? reply.code(202).send() : reply.code(201).send(principal)
    })
  }

  routes.post('/local/login', {
    schema: loginSchema,
    onRequest: refuseWhenBusy,
    preHandler: limits.login,
    errorHandler: answerOnPage
  }, async (request, reply) => {
    const { email, password, remember, next } = request.body
    const principal = await login(request, local, rules, {
      email,
      password,
      remember: isChecked(remember),
      caller: callerOf(request, reply),
      confirmation: { isRequired, send: user => sendVerification(user, outboxOf(request, reply)) }
    })
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
