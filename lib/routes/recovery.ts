import { checkedEmail } from '../email.js'
import { userOfLink } from '../mails/mail-links.js'
import { askToVerify, forgotPassword, releaseEmail, resetPassword, verifyEmail } from '../flows/recovery.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import { principalOf } from '../session/record.js'
import type { MailContext } from './context.js'
import { resetPage, verifyPage } from '../pages/link-pages.js'
import { ACCEPTED, LINK_USED, mountForm } from './form-route.js'
import { LinkPage } from './link-page.js'
import { NEW_PASSWORD_REFUSALS, email, methodOf, newPassword, passwordsFor } from './password-forms.js'
import { accepted, checkbox, done, isChecked, token } from './schema-parts.js'

/** Mounts the routes of a forgotten password and of an address to be confirmed. */
export function mountRecoveryRoutes (context: MailContext, local: LocalIdentityProvider): void {
  const { rules: { store, accounts }, limits, channel, mailer, mailPages } = context
  const { tokens } = mailer
  const recovery = { store, accounts, tokens, channel }

  if (local.accountRoutes.forgotPassword) {
    mountForm(context, {
      path: '/local/forgot-password',
      summary: 'Send the link that chooses a new password',
      description: 'The answer is the same for each address, whether or not an account has it.',
      user: 'anyone',
      fields: { email },
      required: ['email'],
      answers: { 202: accepted },
      refuses: ['invalid_email'],
      limits: [limits.mail]
    }, async ({ fields, outbox }) => {
      const email = checkedEmail(fields.email)
      await forgotPassword(store, outbox, { email, answersUnknown: mailer.answersUnknown })
      return ACCEPTED
    })

    mountForm(context, {
      path: '/local/reset-password',
      summary: 'Choose a new password by the link in a mail',
      user: 'anyone',
      fields: { token, password: newPassword },
      required: ['token', 'password'],
      refuses: ['invalid_token', ...NEW_PASSWORD_REFUSALS],
      hashes: true,
      limits: [limits.code],
      linkPage: new LinkPage(context, {
        kind: 'reset-password',
        summary: 'The page of the link that chooses a new password',
        operationId: 'authLocalResetPasswordPage',
        user: 'anyone',
        customPage: mailPages.resetPassword,
        open: async token => userOfLink(store, await tokens.verify('reset-password', token)),
        page: ({ token, action, link: { email } }, texts) => resetPage(texts, {
          token, action, email, minLength: local.minPasswordLength
        })
      })
    }, async form => {
      const { request, fields: { token, password }, outbox } = form
      await resetPassword(request, recovery, { token, password, passwords: passwordsFor(local, form), outbox })
      return LINK_USED
    })
  }

  mountForm(context, {
    path: '/local/verify-email',
    summary: 'Confirm an address by the link in a mail, or ask for the link',
    description: 'With a token: confirms the address of the account, for its signed-in user or with its password; ' +
      'or, with `not_me` and the address, frees an address that another person registered. ' +
      'Without a token: sends the link to the address of the signed-in user.',
    user: 'signed-in-or-not',
    fields: {
      token,
      password: { type: 'string', description: 'Needed where the user is not signed in' },
      not_me: { ...checkbox, description: 'A checkbox: another person registered the address' },
      email: { ...email, description: 'With `not_me`: the address that the mail was sent to' }
    },
    answers: { 202: accepted, 204: done },
    refuses: ['invalid_token', 'invalid_email', 'unauthenticated', 'invalid', 'user_in_use'],
    bodyLimit: limits.mailOrCode,
    linkPage: new LinkPage(context, {
      kind: 'verify-email',
      summary: 'The page of the link that confirms an address',
      operationId: 'authLocalVerifyEmailPage',
      user: 'anyone',
      customPage: mailPages.verifyEmail,
      open: async token => userOfLink(store, await tokens.verify('verify-email', token)),
      page: ({ token, action, link: { userId, email, createdAt = null, emailVerified } }, texts, request) => {
        const isSignedIn = principalOf(request)?.userId === userId
        return verifyPage(texts, { token, action, email, createdAt, isSignedIn, isVerified: emailVerified })
      }
    })
  }, async form => {
    const { request, fields: { token, password, not_me: isNotMe, email = '' }, outbox } = form
    if (token === undefined) {
      await askToVerify(request, store, outbox)
      return ACCEPTED
    }
    if (isChecked(isNotMe)) {
      await releaseEmail(request, recovery, { token, email })
    } else {
      const method = methodOf(password, passwordsFor(local, form), limits, request)
      await verifyEmail(request, recovery, { token, method })
    }
    return LINK_USED
  })
}
