import type { Mail } from 'fastify-svc-auth'

/** What mails say above their link. The mails of an application are its own: copy these texts, and change them. */
export const TEXTS: Readonly<Record<Mail['kind'], readonly [subject: string, text: string]>> = {
  register: ['Finish your registration',
    'Welcome. Choose your name and your password here:'],
  'verify-email': ['Confirm your e-mail address',
    'An account was registered with this address. Say here whether it was you:'],
  'reset-password': ['Choose a new password',
    'A new password was requested for your account. Choose it here, or ignore this mail:'],
  'change-email': ['Confirm your new e-mail address',
    'This address was entered as the new one of an account. If it was you, confirm it here:'],
  exists: ['You have an account already',
    'A registration was started with your address. Sign in instead, or choose a new password there.'],
  'unknown-address': ['You have no account',
    'A new password was requested for your address, but no account has it.'],
  'password-changed': ['Your password was changed',
    'All other sessions have ended. If it was not you, choose a new password on the sign-in page at once.'],
  'email-changed': ['Your e-mail address was changed',
    'Your account has another address now. If it was not you, answer this mail.'],
  'email-change-requested': ['A new e-mail address was requested',
    'Your account gets another address once that is confirmed. If it was not you, change your password.'],
  'identity-linked': ['A sign-in method was added',
    'Your account has one more sign-in method. If it was not you, remove it and change your password.']
}
