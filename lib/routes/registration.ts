import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { type RegistrationLink, askToRegister, openRegistration, registerConfirmed } from '../flows/registration.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import type { MailContext } from './context.js'
import { registrationPage } from '../pages/link-pages.js'
import { ACCEPTED, type Form, mountForm, signedInAs } from './form-route.js'
import { LinkPage } from './link-page.js'
import { NEW_PASSWORD_REFUSALS, email, filledIn, passwordsFor } from './password-forms.js'
import { isChecked, remember, signedIn, token } from './schema-parts.js'

/**
 * Mounts the registration that confirms the address first, with `registration.verify: 'first'`: the
 * form takes the e-mail alone, and the link in the mail leads to the form for name and password.
 */
export function mountConfirmedRegistration (context: MailContext, local: LocalIdentityProvider): void {
  if (local.registration?.verify !== 'first') return
  const { roles } = local.registration
  const { rules, limits, mailer, mailPages } = context

  const open = async (token: string): Promise<RegistrationLink> => openRegistration(rules.store, mailer.tokens, token)
  const linkPage = new LinkPage(context, {
    kind: 'register',
    summary: 'The page that registers a user whose address is confirmed',
    operationId: 'authLocalRegisterPage',
    user: 'anyone',
    customPage: mailPages.register,
    open,
    page: ({ token, action, link: { email } }, texts) => registrationPage(texts, {
      token, action, email, minLength: local.minPasswordLength, roles, asksToRemember: rules.remember !== null
    })
  })

  mountForm(context, {
    path: '/local/register',
    summary: 'Ask for the link to register, or register with its token',
    description: 'With the e-mail alone: sends a link to it; the answer is the same for each address, whether or not ' +
      'an account has it. With the token of the link and a password: registers the user and signs them in. ' +
      'A password without a token is refused.',
    user: 'anyone',
    fields: {
      email: { ...email, description: `${email.description}; without a token` },
      token,
      password: { type: 'string', description: '8 to 1024 bytes; with a token' },
      name: { type: 'string', maxLength: 1000, description: 'A display name; with a token' },
      role: {
        type: 'string',
        maxLength: 1000,
        description: 'An initial claim, if the application allows it; with a token'
      },
      remember: { ...remember, description: `${remember.description}; with a token` }
    },
    allowsExtraFields: true,
    answers: { 201: signedIn, 202: { type: 'null', description: 'Accepted: a mail follows' } },
    refuses: [
      'invalid_email', ...NEW_PASSWORD_REFUSALS, 'invalid_state', 'invalid_token', 'unauthenticated',
      'claim_not_allowed', 'exists'
    ],
    hashes: 'password',
    async bodyLimit (request) {
      await limits.register(request)
      await limits.mailOrCode(request)
    },
    isSignInAttempt: true,
    linkPage
  }, async form => {
    const { token, name, role, remember } = form.fields
    const password = filledIn(form.fields.password)
    if (token === undefined) return ask(form, password)
    if (password === undefined) throw invalid('A registration needs a password beside the token of the mail.')
    return signedInAs(await registerConfirmed(form.request, local, rules, {
      link: await open(token),
      password,
      name: filledIn(name?.trim()),
      role: filledIn(role),
      remember: isChecked(remember),
      passwords: passwordsFor(local, form)
    }), 201)
  })

  async function ask (
    { fields: { email }, outbox }: Form<{ email?: string }>,
    password: string | undefined
  ): Promise<typeof ACCEPTED> {
    // Not ignored: a page that asks for a password here would let users believe that they have set
    // it.
    if (email === undefined || password !== undefined) {
      throw invalid('A registration begins with the e-mail alone; the password goes with the token of the mail.')
    }
    await askToRegister(rules.store, outbox, checkedEmail(email))
    return ACCEPTED
  }
}

function invalid (message: string): AuthError {
  return new AuthError('invalid_request', { message })
}
