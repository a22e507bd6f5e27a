import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import {
  type CredentialRules, type GivenProof, changePassword, confirmNewEmail, deleteAccount, requestNewEmail,
  setFirstPassword
} from '../flows/credentials.js'
import { userOfLink } from '../flows/mail-links.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { NewEmailProof } from '../local/mail-token.js'
import { principalOf } from '../session/record.js'
import type { MailContext } from './context.js'
import { type FormPage, PASSWORD_FIELD } from './form-page.js'
import { LinkPage, type OpenLink } from './link-page.js'
import { missingProof } from './missing-proof.js'
import { callerOf, email, filledIn, formAnswers, refuseWhenBusy } from './password-forms.js'
import {
  FORM_OR_JSON, SESSION, SESSION_OR_NOTHING, type SchemaTypes, accepted, errorNext, linkPage, next, redirect, refusals,
  tags, token
} from './schema-parts.js'

const current = {
  type: 'string',
  description: 'The present password; without it, the last sign-in must be less than ten minutes ago'
} as const

const newPassword = { type: 'string', description: '8 to 1024 bytes' } as const

/** The failures of a change that needs a proof of the signed-in user. */
const UNPROVEN = [
  'invalid_request', 'invalid_state', 'invalid', 'unauthenticated', 'cross_origin', 'reauthenticate', 'rate_limited',
  'busy', 'unavailable'
] as const

const changed = { type: 'null', description: 'Done: the session has a new id, and all others have ended' } as const

const changePasswordSchema = {
  tags,
  summary: 'Change the password of the signed-in user',
  operationId: 'authLocalChangePassword',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['password'],
    properties: { current, password: newPassword, next, error_next: errorNext }
  },
  response: { 204: changed, 303: redirect, ...refusals(...UNPROVEN, 'weak_password', 'breached_password') }
} as const

const setPasswordSchema = {
  tags,
  summary: 'Set the first password of the signed-in user',
  description: 'The last sign-in must be less than ten minutes ago.',
  operationId: 'authLocalSetPassword',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['password'],
    properties: { password: newPassword, next, error_next: errorNext }
  },
  response: {
    204: changed,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'unauthenticated', 'cross_origin', 'reauthenticate', 'unverified', 'exists',
      'weak_password', 'breached_password', 'rate_limited', 'busy', 'unavailable'
    )
  }
} as const

const changeEmailSchema = {
  tags,
  summary: 'Ask for a link to a new e-mail address of the signed-in user',
  description: 'The answer is the same whether or not another account has the address.',
  operationId: 'authLocalChangeEmail',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['email'],
    properties: { email, current, next, error_next: errorNext }
  },
  response: {
    202: accepted,
    303: redirect,
    ...refusals(...UNPROVEN, 'invalid_email')
  }
} as const

const newEmailPageSchema = {
  tags,
  summary: 'The page that confirms a new e-mail address',
  operationId: 'authLocalChangeEmailPage',
  security: SESSION_OR_NOTHING,
  ...linkPage
} as const

const confirmEmailSchema = {
  tags,
  summary: 'Confirm a new e-mail address',
  operationId: 'authLocalChangeEmailConfirm',
  security: SESSION_OR_NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['token'],
    properties: {
      token,
      password: { type: 'string', description: 'The password of the account, where its user is not signed in' },
      next,
      error_next: errorNext
    }
  },
  response: {
    204: changed,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_state', 'invalid', 'invalid_token', 'unauthenticated', 'cross_origin', 'exists',
      'rate_limited', 'busy', 'unavailable'
    )
  }
} as const

const deleteAccountSchema = {
  tags,
  summary: 'Delete the account of the signed-in user',
  operationId: 'authLocalDeleteAccount',
  security: SESSION,
  consumes: FORM_OR_JSON,
  body: { type: 'object', properties: { current, next, error_next: errorNext } },
  response: {
    204: { type: 'null', description: 'Deleted, and signed out' },
    303: redirect,
    ...refusals(...UNPROVEN, 'user_in_use')
  }
} as const

/** Mounts the routes by which a signed-in user changes their password and e-mail, or leaves. */
export function mountCredentialRoutes (context: MailContext, local: LocalIdentityProvider): void {
  const { scope, pages, limits, channel, mailer, mailPages } = context
  const { store, accounts } = context.rules
  const rules: CredentialRules = { local, store, accounts, channel }
  const routes = scope.withTypeProvider<SchemaTypes>()
  const { done, accepted: answerAccepted, redeemed, answerOnPage } = formAnswers(pages)

  /** How the signed-in user proves who they are, with their present password or without it. */
  const givenIn = (request: FastifyRequest, reply: FastifyReply, current: string | undefined): GivenProof => ({
    password: filledIn(current),
    caller: callerOf(request, reply),
    countChange: async () => limits.reauthenticate(request),
    count: async email => limits.attempt(request, email)
  })

  const answerRefusal = async (
    error: FastifyError,
    request: FastifyRequest,
    reply: FastifyReply
  ): Promise<FastifyReply> => answerOnPage(error, request, reply, await missingProof(error, request, context))

  routes.post('/local/change-password', {
    schema: changePasswordSchema,
    onRequest: refuseWhenBusy,
    errorHandler: answerRefusal
  }, async (request, reply) => {
    const { current, password, next } = request.body
    const outbox = mailer.outbox(request, reply)
    await changePassword(request, rules, { password, current: givenIn(request, reply, current), outbox })
    return done(request, reply, next)
  })

  routes.post('/local/set-password', {
    schema: setPasswordSchema,
    onRequest: refuseWhenBusy,
    errorHandler: answerRefusal
  }, async (request, reply) => {
    const { password, next } = request.body
    const outbox = mailer.outbox(request, reply)
    await setFirstPassword(request, rules, { password, current: givenIn(request, reply, undefined), outbox })
    return done(request, reply, next)
  })

  routes.post('/local/change-email', {
    schema: changeEmailSchema,
    onRequest: [refuseWhenBusy, limits.mail],
    errorHandler: answerRefusal
  }, async (request, reply) => {
    const { email, current, next } = request.body
    await requestNewEmail(request, rules, {
      email,
      current: givenIn(request, reply, current),
      outbox: mailer.outbox(request, reply),
      countLink: async () => limits.newEmail(request)
    })
    return answerAccepted(request, reply, next)
  })

  const open = async (token: string): Promise<NewEmailProof> => {
    const proof = await mailer.tokens.verify('change-email', token)
    await userOfLink(store, proof)
    return proof
  }
  const page = new LinkPage(context, {
    kind: 'change-email',
    instead: mailPages.changeEmail,
    title: 'Confirm your new address',
    open,
    page: newEmailForm
  })

  routes.get('/local/change-email/confirm', {
    schema: newEmailPageSchema,
    errorHandler: page.fail
  }, async (request, reply) => page.show(request, reply, request.query.token))

  routes.post('/local/change-email/confirm', {
    schema: confirmEmailSchema,
    onRequest: [refuseWhenBusy, limits.code],
    errorHandler: page.fail
  }, async (request, reply) => {
    const { token, password, next } = request.body
    await confirmNewEmail(request, rules, {
      proof: await mailer.tokens.verify('change-email', token),
      outbox: mailer.outbox(request, reply),
      given: {
        password: filledIn(password),
        caller: callerOf(request, reply),
        count: async email => limits.attempt(request, email)
      }
    })
    return redeemed(request, reply, next)
  })

  routes.post('/local/delete-account', {
    schema: deleteAccountSchema,
    onRequest: refuseWhenBusy,
    errorHandler: answerRefusal
  }, async (request, reply) => {
    const { current, next } = request.body
    await deleteAccount(request, reply, rules, givenIn(request, reply, current))
    return done(request, reply, next)
  })
}

/** The form that confirms a new address. It asks for the password unless the user is signed in. */
function newEmailForm (
  { token, action, proof: { userId, email, to } }: OpenLink<NewEmailProof>,
  request: FastifyRequest
): FormPage {
  const isSignedIn = principalOf(request)?.userId === userId
  return {
    title: 'Confirm your new address',
    text: [
      `${to} becomes the e-mail address of your account, in place of ${email}.`,
      ...isSignedIn ? [] : ['Enter the password of the account, or sign in first and open the link again.']
    ],
    forms: [{
      action,
      hidden: { token },
      ...(!isSignedIn && { username: email }),
      fields: isSignedIn ? [] : [PASSWORD_FIELD],
      submit: 'Confirm'
    }]
  }
}
