/** Loaded only with the option `sendMail`, to keep the start of other applications fast. */
import type { Act } from '../core/act.js'
import { deleteAccount } from './account/acts.js'
import { registerConfirmed } from './password/confirmed-registration.js'
import { confirmNewEmail, requestNewEmail, verifyEmail } from './email/acts.js'
import { changePassword, setFirstPassword } from './password/acts.js'
import { confirmMail, mailLoginPage, requestMail } from './mail-sign-in/acts.js'
import { forgotPassword, resetPassword } from './recovery.js'

/** What sends mails and what their links lead to, and the changes of credentials. */
export const MAIL_ACTS: readonly Act[] = [
  forgotPassword, resetPassword, verifyEmail, changePassword, setFirstPassword, requestNewEmail, confirmNewEmail,
  deleteAccount, registerConfirmed,
  mailLoginPage, requestMail, confirmMail
]
