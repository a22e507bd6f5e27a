import {
  type CredentialRules, type PasswordChange, changePassword, confirmNewEmail, deleteAccount, requestNewEmail,
  setFirstPassword
} from '../flows/credentials.js'
import { userOfLink } from '../mails/mail-links.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import { principalOf } from '../session/record.js'
import type { MailContext } from './context.js'
import { changeEmailPage } from '../pages/link-pages.js'
import { ACCEPTED, type Form, LINK_USED, mountForm } from './form-route.js'
import { LinkPage } from './link-page.js'
import { NEW_PASSWORD_REFUSALS, email, methodOf, newPassword, passwordsFor } from './password-forms.js'
import { accepted, token } from './schema-parts.js'

const current = {
  type: 'string',
  description: 'The present password; without it, the last sign-in must be less than ten minutes ago'
} as const

/** The failures of a change that the signed-in user must authenticate for. */
const UNPROVEN = ['invalid_state', 'invalid', 'reauthenticate'] as const

const changed = { type: 'null', description: 'Done: the session has a new id, and all others have ended' } as const

/** Mounts the routes by which a signed-in user changes their password and e-mail, or leaves. */
export function mountCredentialRoutes (context: MailContext, local: LocalIdentityProvider): void {
  const { rules: { store, accounts, factors }, limits, channel, mailer, mailPages, onDelete } = context
  const { accountRoutes } = local
  const rules: CredentialRules = { store, accounts, factors, channel, onDelete }

  /** Authenticates the signed-in user by their present password, or by a recent sign-in. */
  const changeIn = (form: Form<{ current?: string }>): Omit<PasswordChange, 'password'> => {
    const { request, fields: { current }, outbox } = form
    const passwords = passwordsFor(local, form)
    return {
      method: methodOf(current, passwords, limits, request),
      passwords,
      countChange: async () => limits.reauthenticate(request),
      outbox
    }
  }

  if (accountRoutes.changePassword) {
    mountForm(context, {
      path: '/local/change-password',
      summary: 'Change the password of the signed-in user',
      user: 'signed-in',
      fields: { current, password: newPassword },
      required: ['password'],
      answers: { 204: changed },
      refuses: [...UNPROVEN, ...NEW_PASSWORD_REFUSALS],
      hashes: true,
      isSignInAttempt: true
    }, async form => changePassword(form.request, rules, { ...changeIn(form), password: form.fields.password }))
  }

  if (accountRoutes.setPassword) {
    mountForm(context, {
      path: '/local/set-password',
      summary: 'Set the first password of the signed-in user',
      description: 'The last sign-in must be less than ten minutes ago.',
      user: 'signed-in',
      fields: { password: newPassword },
      required: ['password'],
      answers: { 204: changed },
      refuses: ['invalid_state', 'reauthenticate', 'unverified', 'exists', ...NEW_PASSWORD_REFUSALS],
      hashes: true,
      isSignInAttempt: true
    }, async form => {
      const { password } = form.fields
      await setFirstPassword(form.request, rules, { ...changeIn({ ...form, fields: {} }), password })
    })
  }

  if (accountRoutes.changeEmail) {
    mountForm(context, {
      path: '/local/change-email',
      summary: 'Ask for a link to a new e-mail address of the signed-in user',
      description: 'The answer is the same whether or not another account has the address.',
      user: 'signed-in',
      fields: { email, current },
      required: ['email'],
      answers: { 202: accepted },
      refuses: [...UNPROVEN, 'invalid_email'],
      hashes: 'current',
      bodyLimit: limits.mail,
      isSignInAttempt: true
    }, async form => {
      const countLink = async (): Promise<void> => limits.newEmail(form.request)
      await requestNewEmail(form.request, rules, { ...changeIn(form), email: form.fields.email, countLink })
      return ACCEPTED
    })

    mountForm(context, {
      path: '/local/change-email/confirm',
      summary: 'Confirm a new e-mail address',
      user: 'signed-in-or-not',
      fields: {
        token,
        password: { type: 'string', description: 'The password of the account, where its user is not signed in' }
      },
      required: ['token'],
      answers: { 204: changed },
      refuses: ['invalid_state', 'invalid', 'invalid_token', 'unauthenticated', 'exists'],
      hashes: 'password',
      bodyLimit: limits.code,
      linkPage: new LinkPage(context, {
        kind: 'change-email',
        summary: 'The page that confirms a new e-mail address',
        operationId: 'authLocalChangeEmailPage',
        user: 'signed-in-or-not',
        customPage: mailPages.changeEmail,
        async open (token) {
          const link = await mailer.tokens.verify('change-email', token)
          return { ...await userOfLink(store, link), to: String(link.to) }
        },
        page: ({ token, action, link: { userId, email, to } }, texts, request) => changeEmailPage(texts, {
          token, action, email, to, isSignedIn: principalOf(request)?.userId === userId
        })
      })
    }, async form => {
      const { request, fields: { token, password }, outbox } = form
      const link = await mailer.tokens.verify('change-email', token)
      const to = String(link.to)
      const method = methodOf(password, passwordsFor(local, form), limits, request)
      await confirmNewEmail(request, rules, { link: { ...link, to }, method, outbox })
      return LINK_USED
    })
  }

  if (accountRoutes.deleteAccount) {
    mountForm(context, {
      path: '/local/delete-account',
      summary: 'Delete the account of the signed-in user',
      user: 'signed-in',
      fields: { current },
      answers: { 204: { type: 'null', description: 'Deleted, and signed out' } },
      refuses: [...UNPROVEN, 'user_in_use'],
      hashes: 'current',
      isSignInAttempt: true
    }, async form => deleteAccount(form.request, form.reply, rules, changeIn(form)))
  }
}
