import type { FastifyReply, FastifyRequest } from 'fastify'
import { canonicalEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { askToRegister, openRegistration, registerConfirmed } from '../flows/registration.js'
import { wantsJson } from '../http/accept.js'
import type { LocalIdentityProvider } from '../local/identity-provider.js'
import type { MailProof } from '../local/mail-token.js'
import type { MailContext } from './context.js'
import type { FormPage } from './form-page.js'
import { LinkPage, type OpenLink } from './link-page.js'
import { callerOf, email, filledIn, formAnswers, ownFields, refuseWhenBusy } from './password-forms.js'
import {
  FORM_OR_JSON, NOTHING, type SchemaTypes, errorNext, isChecked, linkPage, next, redirect, refusals, remember, signedIn,
  tags, token
} from './schema-parts.js'

const pageSchema = {
  tags,
  summary: 'The page that registers a user whose address is confirmed',
  operationId: 'authLocalRegisterPage',
  security: NOTHING,
  ...linkPage
} as const

const registerSchema = {
  tags,
  summary: 'Ask for the link to register, or register with its token',
  description: 'With the e-mail alone: sends a link to it; the answer is the same for each address, whether or not ' +
    'an account has it. With the token of the link and a password: registers the user and signs them in. ' +
    'A password without a token is refused.',
  operationId: 'authLocalRegister',
  security: NOTHING,
  consumes: FORM_OR_JSON,
  body: {
    type: 'object',
    properties: {
      email: { ...email, description: `${email.description}; without a token` },
      token,
      password: { type: 'string', description: '8 to 1024 bytes; with a token' },
      name: { type: 'string', maxLength: 1000, description: 'A display name; with a token' },
      role: {
        type: 'string',
        maxLength: 1000,
        description: 'An initial claim, if the application allows it; with a token'
      },
      remember: { ...remember, description: `${remember.description}; with a token` },
      next,
      error_next: errorNext
    },
    ...ownFields
  },
  response: {
    201: signedIn,
    202: { type: 'null', description: 'Accepted: a mail follows' },
    303: redirect,
    ...refusals(
      'invalid_request', 'invalid_email', 'weak_password', 'breached_password', 'invalid_state', 'invalid_token',
      'unauthenticated', 'cross_origin', 'claim_not_allowed', 'exists', 'rate_limited', 'busy', 'unavailable'
    )
  }
} as const

/**
 * Mounts the registration that confirms the address first, with `registration.verify: 'first'`: the
 * form takes the e-mail alone, and the link in the mail leads to the form for name and password.
 */
export function mountConfirmedRegistration (context: MailContext, local: LocalIdentityProvider): void {
  if (local.registration?.verify !== 'first') return
  const { roles } = local.registration
  const { scope, rules, pages, limits, mailer, mailPages } = context
  const routes = scope.withTypeProvider<SchemaTypes>()
  const { goTo, accepted, answerOnPage } = formAnswers(pages)

  const open = async (token: string): Promise<MailProof> => openRegistration(rules.store, mailer.tokens, token)
  const page = new LinkPage(context, {
    kind: 'register',
    instead: mailPages.register,
    title: 'Register',
    open,
    page: link => registrationForm(link, { roles, asksToRemember: rules.remember !== null })
  })

  routes.get('/local/register', {
    schema: pageSchema,
    errorHandler: page.fail
  }, async (request, reply) => page.show(request, reply, request.query.token))

  routes.post('/local/register', {
    schema: registerSchema,
    onRequest: [refuseWhenBusy, limits.register],
    preHandler: async request => request.body.token === undefined ? limits.mail(request) : limits.code(request),
    errorHandler: (error, request, reply) => Object(request.body).token === undefined
      ? answerOnPage(error, request, reply)
      : page.fail(error, request, reply)
  }, async (request, reply) => {
    const { email, token, name, role, remember, next } = request.body
    const password = filledIn(request.body.password)
    if (token === undefined) {
      await ask(request, reply, { email, password })
      return accepted(request, reply, next)
    }
    if (password === undefined) throw invalid('A registration needs a password beside the token of the mail.')
    const principal = await registerConfirmed(request, local, rules, {
      link: await open(token),
      password,
      name: filledIn(name?.trim()),
      role: filledIn(role),
      remember: isChecked(remember),
      caller: callerOf(request, reply)
    })
    return wantsJson(request) ? reply.code(201).send(principal) : goTo(request, reply, next)
  })

  async function ask (
    request: FastifyRequest,
    reply: FastifyReply,
    { email, password }: { email: string | undefined, password: string | undefined }
  ): Promise<void> {
    // Not ignored: a page that asks for a password here would let users believe that they have set
    // it.
    if (email === undefined || password !== undefined) {
      throw invalid('A registration begins with the e-mail alone; the password goes with the token of the mail.')
    }
    const canonical = canonicalEmail(email)
    if (canonical === null) throw new AuthError('invalid_email')
    await askToRegister(rules.store, mailer.outbox(request, reply), canonical)
  }
}

function invalid (message: string): AuthError {
  return new AuthError('invalid_request', { message })
}

function registrationForm (
  { token, action, proof: { email } }: OpenLink<MailProof>,
  { roles, asksToRemember }: { roles: readonly string[], asksToRemember: boolean }
): FormPage {
  return {
    title: 'Register',
    text: [],
    forms: [{
      action,
      hidden: { token },
      username: email,
      fields: [
        { name: 'name', label: 'Name (optional)', type: 'text', autocomplete: 'name', isOptional: true },
        { name: 'password', label: 'Password', type: 'password', autocomplete: 'new-password' },
        ...roles.length === 0 ? [] : [{ name: 'role', label: 'Role', choices: roles }],
        ...asksToRemember ? [{ name: 'remember', label: 'Keep me signed in', type: 'checkbox' as const }] : []
      ],
      submit: 'Register'
    }]
  }
}
