import type { FastifyRequest } from 'fastify'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { askToVerify, disownEmail, forgotPassword, resetPassword, verifyEmail } from '../flows/recovery.js'
import { type MailboxOwner, userOfLink } from '../flows/mail-links.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import { principalOf } from '../session/record.js'
import { answerFailure } from './answers.js'
import type { MailContext } from './context.js'
import { type FormPage, PASSWORD_FIELD, type PageField, type PageForm } from './form-page.js'
import { LinkPage, type OpenLink } from './link-page.js'
import { callerOf, email, filledIn, formAnswers, refuseWhenBusy } from './password-forms.js'
import {
  FORM_OR_JSON, NOTHING, SESSION_OR_NOTHING, type SchemaTypes, accepted, checkbox, done, errorNext, isChecked,
  linkPage, next, redirect, refusals, tags, token
} from './schema-parts.js'

const forgotSchema = {
  tags,
  summary: 'Send the link that chooses a new password',
  description: 'The answer is the same for each address, whether or not an account has it.',
  operationId: 'authLocalForgotPassword',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: { type: 'object', required: ['email'], properties: { email, next, error_next: errorNext } },
  response: {
    202: accepted,
    303: redirect,
    ...refusals('invalid_request', 'invalid_email', 'cross_origin', 'rate_limited', 'busy', 'unavailable')
  }
} as const

const resetPageSchema = {
  tags,
  summary: 'The page of the link that chooses a new password',
  operationId: 'authLocalResetPasswordPage',
  security: NOTHING,
  ...linkPage
} as const

const resetSchema = {
  tags,
  summary: 'Choose a new password by the link in a mail',
  operationId: 'authLocalResetPassword',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    required: ['token', 'password'],
    properties: { token, password: { type: 'string', description: '8 to 1024 bytes' }, next, error_next: errorNext }
  },
  response: {
    204: done,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_token', 'weak_password', 'breached_password', 'cross_origin', 'rate_limited', 'busy',
      'unavailable'
    )
  }
} as const

const verifyPageSchema = {
  tags,
  summary: 'The page of the link that confirms an address',
  operationId: 'authLocalVerifyEmailPage',
  security: NOTHING,
  ...linkPage
} as const

const verifySchema = {
  tags,
  summary: 'Confirm an address by the link in a mail, or ask for the link',
  description: 'With a token: confirms the address of the account, for its signed-in user or with its password; ' +
    'or, with `disown` and the address, frees an address that another person registered. ' +
    'Without a token: sends the link to the address of the signed-in user.',
  operationId: 'authLocalVerifyEmail',
  security: SESSION_OR_NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    properties: {
      token,
      password: { type: 'string', description: 'Needed where the user is not signed in' },
      disown: { ...checkbox, description: 'A checkbox: another person registered the address' },
      email: { ...email, description: 'With `disown`: the address that the mail was sent to' },
      next,
      error_next: errorNext
    }
  },
  response: {
    202: accepted,
    204: done,
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_token', 'invalid_email', 'unauthenticated', 'invalid', 'cross_origin', 'user_in_use',
      'rate_limited', 'busy', 'unavailable'
    )
  }
} as const

/** Mounts the routes of a forgotten password and of an address to be confirmed. */
export function mountRecoveryRoutes (context: MailContext, local: LocalIdentityProvider): void {
  const { scope, rules: { store, accounts }, pages, limits, channel, mailer, mailPages } = context
  const { tokens } = mailer
  const recovery = { local, store, accounts, tokens, channel }
  const routes = scope.withTypeProvider<SchemaTypes>()

  const { accepted: answerAccepted, redeemed } = formAnswers(pages)

  routes.post('/local/forgot-password', {
    schema: forgotSchema,
    onRequest: limits.mail
  }, async (request, reply) => {
    const { next } = request.body
    const email = canonicalEmail(request.body.email)
    if (email === null) throw new AuthError('invalid_email')
    await forgotPassword(store, mailer.outbox(request, reply), { email, answersUnknown: mailer.answersUnknown })
    return answerAccepted(request, reply, next)
  })

  const resetPage = new LinkPage(context, {
    kind: 'reset-password',
    instead: mailPages.resetPassword,
    title: 'Choose a new password',
    open: async token => userOfLink(store, await tokens.verify('reset-password', token)),
    page: resetPageOf
  })

  routes.get('/local/reset-password', {
    schema: resetPageSchema,
    errorHandler: resetPage.fail
  }, async (request, reply) => resetPage.show(request, reply, request.query.token))

  routes.post('/local/reset-password', {
    schema: resetSchema,
    onRequest: [refuseWhenBusy, limits.code],
    errorHandler: resetPage.fail
  }, async (request, reply) => {
    const { token, password, next } = request.body
    const outbox = mailer.outbox(request, reply)
    await resetPassword(request, recovery, { token, password, caller: callerOf(request, reply), outbox })
    return redeemed(request, reply, next)
  })

  const verifyPage = new LinkPage(context, {
    kind: 'verify-email',
    instead: mailPages.verifyEmail,
    title: 'Confirm your e-mail address',
    open: async token => userOfLink(store, await tokens.verify('verify-email', token)),
    page: verifyPageOf
  })

  routes.get('/local/verify-email', {
    schema: verifyPageSchema,
    errorHandler: verifyPage.fail
  }, async (request, reply) => verifyPage.show(request, reply, request.query.token))

  routes.post('/local/verify-email', {
    schema: verifySchema,
    preHandler: async request => request.body.token === undefined ? limits.mail(request) : limits.code(request),
    errorHandler (error, request, reply) {
      const { token, error_next: errorNext }: { token?: unknown, error_next?: unknown } = Object(request.body)
      if (token !== undefined) return verifyPage.fail(error, request, reply)
      return answerFailure(request, reply, error, { page: pages.forError(request, errorNext) })
    }
  }, async (request, reply) => {
    const { token, password, disown, email = '', next } = request.body
    if (token === undefined) {
      await askToVerify(request, store, mailer.outbox(request, reply))
      return answerAccepted(request, reply, next)
    }
    if (isChecked(disown)) {
      await disownEmail(request, recovery, { token, email })
    } else {
      await verifyEmail(request, recovery, {
        token,
        password: filledIn(password),
        caller: callerOf(request, reply),
        countPassword: email => limits.attempt(request, email)
      })
    }
    return redeemed(request, reply, next)
  })
}

const NEW_PASSWORD: PageField = {
  name: 'password', label: 'New password', type: 'password', autocomplete: 'new-password'
}

function resetPageOf ({ token, action, proof: { email } }: OpenLink<MailboxOwner>): FormPage {
  return {
    title: 'Choose a new password',
    text: ['The account is then signed out on all devices. Sign in with the new password.'],
    forms: [{
      action,
      hidden: { token },
      username: email,
      fields: [NEW_PASSWORD],
      submit: 'Set the password'
    }]
  }
}

/** Has no text that the person who registered chose: they may be a stranger to the reader. */
function verifyPageOf ({ token, action, proof: user }: OpenLink<MailboxOwner>, request: FastifyRequest): FormPage {
  const { userId, email, emailVerified, createdAt } = user
  const date = createdAt === undefined ? '' : ` on ${createdAt.toISOString().slice(0, 10)}`
  const isSignedIn = principalOf(request)?.userId === userId
  const confirm: PageForm = {
    heading: 'It was you',
    action,
    hidden: { token },
    username: email,
    fields: isSignedIn ? [] : [PASSWORD_FIELD],
    submit: 'Confirm the address'
  }
  const disown: PageForm = {
    heading: 'It was not you',
    action,
    hidden: { token, disown: 'true' },
    fields: [{ name: 'email', label: 'Type your e-mail address to free it', type: 'email', autocomplete: 'email' }],
    submit: 'Remove the address'
  }
  return {
    title: 'Confirm your e-mail address',
    text: [`An account was registered with this e-mail address${date}.`],
    forms: emailVerified ? [confirm] : [confirm, disown]
  }
}
