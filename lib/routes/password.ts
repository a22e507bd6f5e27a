import { login } from '../flows/local.js'
import { sendVerification } from '../mails/mail-links.js'
import { passwordMethod } from '../flows/methods.js'
import { reauthenticate } from '../flows/reauthentication.js'
import { register } from '../flows/registration.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import type { RouteContext } from './context.js'
import { ACCEPTED, mountForm, signedInAs } from './form-route.js'
import { NEW_PASSWORD_REFUSALS, email, filledIn, newPassword, password, passwordsFor } from './password-forms.js'
import { checkbox, isChecked, remember, signedIn } from './schema-parts.js'

/** Mounts the routes that register users, sign them in by password, and verify it again. */
export function mountPasswordRoutes (context: RouteContext, local: LocalIdentityProvider): void {
  const { rules, limits, mailer } = context
  const isRequired = local.registration?.verify === 'required'

  if (local.registration !== null && local.registration.verify !== 'first') {
    mountForm(context, {
      path: '/local/register',
      summary: isRequired
        ? 'Register with e-mail and password; the link in a mail confirms the address'
        : 'Register with e-mail and password, and sign in',
      user: 'anyone',
      fields: {
        email,
        password: newPassword,
        name: { type: 'string', maxLength: 1000, description: 'A display name' },
        role: { type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it' },
        email_verified: {
          ...checkbox,
          description: 'A checkbox: an initial claim, if the application allows it'
        },
        remember
      },
      required: ['email', 'password'],
      allowsExtraFields: true,
      answers: isRequired
        ? { 202: { type: 'null', description: 'Registered: the user signs in once their address is confirmed' } }
        : { 201: signedIn },
      refuses: [
        'invalid_email', ...NEW_PASSWORD_REFUSALS, 'claim_not_allowed', 'exists',
        ...isRequired ? [] : ['invalid_state', 'unauthenticated'] as const
      ],
      hashes: true,
      // A registration sends a mail, and one mailbox may have many addresses.
      limits: mailer === null ? [limits.register] : [limits.register, limits.mail],
      isSignInAttempt: true
    }, async form => {
      const { email, password, name, role, email_verified: emailVerified, remember } = form.fields
      const { outbox } = form
      outbox.refuseWhenFull()
      const principal = await register(form.request, local, rules, {
        email,
        password,
        name: filledIn(name?.trim()),
        role: filledIn(role),
        emailVerified: isChecked(emailVerified),
        remember: isChecked(remember),
        passwords: passwordsFor(local, form),
        confirmation: { isRequired, send: user => { sendVerification(user, outbox) } }
      })
      return principal === null ? ACCEPTED : signedInAs(principal, 201)
    })
  }

  mountForm(context, {
    path: '/local/login',
    summary: 'Sign in with e-mail and password',
    user: 'anyone',
    fields: { email, password, remember },
    required: ['email', 'password'],
    allowsExtraFields: true,
    answers: { 200: signedIn },
    refuses: ['invalid_state', 'invalid', 'unauthenticated', 'blocked', 'unverified'],
    hashes: true,
    isSignInAttempt: true
  }, async form => {
    const { email, password, remember } = form.fields
    return signedInAs(await login(form.request, rules, {
      email,
      password,
      remember: isChecked(remember),
      passwords: passwordsFor(local, form),
      count: lookUp => limits.login(form.request, lookUp),
      confirmation: { isRequired, send: user => { form.outbox.refuseWhenFull(); sendVerification(user, form.outbox) } }
    }))
  })

  // With factors, the form takes their codes too.
  if (rules.factors !== null) return
  mountForm(context, {
    path: '/local/reauthenticate',
    summary: 'Authenticate the signed-in user again',
    user: 'signed-in',
    fields: { password },
    required: ['password'],
    answers: { 204: { type: 'null', description: 'Done: the session has a new id' } },
    refuses: ['invalid_state', 'invalid'],
    hashes: true,
    limits: [limits.reauthenticate],
    isSignInAttempt: true
  }, async form => {
    const method = passwordMethod(form.fields.password, passwordsFor(local, form))
    await reauthenticate(form.request, rules.store, method)
  })
}
