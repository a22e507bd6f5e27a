import { isBlocked } from '../accounts/account.js'
import { announceRevoke, audit, noteSubject } from '../audit.js'
import { needed } from '../core/context.js'
import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { html, newPasswordField, usernameField } from '../core/pages/elements.js'
import { ACCEPTED, LINK_USED, form } from '../core/form.js'
import { openLink } from '../core/pages/link-page.js'
import { NEW_PASSWORD_REFUSALS, email, newPassword } from './password/forms.js'
import { otherWaysTo, refuseOtherWays } from '../core/required-connection.js'
import { accepted, token } from '../core/schema.js'
import { auditFirstProof, existing, existingOf, unprovenIn } from './email/acts.js'
import { existingParts } from './pages/parts.js'
import { assertText } from './password/hashing.js'
import { findByMailbox } from './mail-links.js'

/**
 * Sends the link that chooses a new password, or a first one; a blocked user gets none. The answer
 * follows one look-up for each address, so that its time does not tell whether an account has it.
 */
export const forgotPassword = form({
  path: '/local/forgot-password',
  when: ({ local }) => local?.accountRoutes.forgotPassword === true,
  summary: 'Send the link that chooses a new password',
  description: 'The answer is the same for each address, whether or not an account has it.',
  user: 'anyone',
  fields: { email },
  required: ['email'],
  answers: { 202: accepted },
  refuses: ['invalid_email', 'sso_required'],
  limits: ['mail']
}, async (auth, { fields, outbox }) => {
  const email = checkedEmail(fields.email)
  outbox.refuseWhenFull()
  const user = await findByMailbox(auth.accounts, email)
  const { isServed, refuse } = await otherWaysTo(auth, email)
  if (!isServed(user)) {
    outbox.skip('reset-password', 'sso-required')
  } else if (user === null) {
    if (needed(auth.mailer, 'sendMail').answersUnknown) outbox.sendTo('unknown-address', email, null)
    else outbox.skip('reset-password', 'unknown')
  } else if (isBlocked(user)) {
    outbox.skip('reset-password', 'blocked')
  } else {
    // To the stored address and not to the one that was typed.
    outbox.link('reset-password', { ...user, to: null }, user)
  }
  refuse()
  return { ...ACCEPTED, asked: { form: 'forgot-password', email } }
})

/**
 * Sets the password of the user that a link is about, and ends all their sessions. When they had
 * never owned an address of the account, another person may have made it: all other links and
 * factors are removed, unless the user keeps them in their session. A refused link still works.
 *
 * @see OWASP ASVS 6.4.3, 7.4.3
 */
export const resetPassword = form({
  path: '/local/reset-password',
  when: ({ local }) => local?.accountRoutes.forgotPassword === true,
  summary: 'Choose a new password by the link in a mail',
  user: 'anyone',
  fields: { token, password: newPassword, existing },
  required: ['token', 'password'],
  refuses: ['invalid_token', 'choice_required', 'unauthenticated', 'sso_required', ...NEW_PASSWORD_REFUSALS],
  hashes: true,
  limits: ['code'],
  linkPage: {
    kind: 'reset-password',
    summary: 'The page of the link that chooses a new password',
    user: 'anyone',
    customPage: 'resetPassword',
    async open (auth, { request, token, form, texts }) {
      const { common, titles, links } = texts
      const { user } = await openLink(auth, 'reset-password', token)
      const { minPasswordLength } = needed(auth.local, 'local')
      const { list, choice } = existingParts(auth, texts, await unprovenIn(auth, request, user, true))
      return {
        title: titles['reset-password'],
        content: [html`<p>${links.resetText}</p>`, form(links.resetSubmit, [
          usernameField(common.email, user.email), list,
          newPasswordField(common, common.newPassword, minPasswordLength)
        ], { choice })]
      }
    }
  }
}, async (auth, submission) => {
  const { request, fields: { token, password, existing: chosen }, passwords, outbox } = submission
  assertText(password)
  const { user } = await openLink(auth, 'reset-password', token)
  const { userId, email } = user
  noteSubject(request, userId)
  await refuseOtherWays(auth, user)
  const existing = await existingOf(auth, request, user, { existing: chosen, hasNewPassword: true })
  const passwordHash = await passwords.hashPassword(password, { email })
  const reset = await auth.accounts.resetPassword(user, passwordHash, existing)
  if (reset === null) throw new AuthError('invalid_token')
  audit('password', { userId }, request)
  if (!reset.wasProven) auditFirstProof(request, reset, existing)
  announceRevoke(auth.channel, userId, request)
  outbox.notice('password-changed', reset.user)
  return LINK_USED
})
