import type { Mail } from 'fastify-svc-auth'

/** What a mail says, above its link. */
export interface MailText {
  subject: string
  text: string
}

/** The mails of an application are its own: copy these texts, and change them. */
const TEXTS: Readonly<Record<Mail['kind'], MailText>> = {
  register: {
    subject: 'Finish your registration',
    text: 'Welcome. Choose your name and your password here:'
  },
  'verify-email': {
    subject: 'Confirm your e-mail address',
    text: 'An account was registered with this address. Say here whether it was you:'
  },
  'reset-password': {
    subject: 'Choose a new password',
    text: 'A new password was requested for your account. Choose it here, or ignore this mail:'
  },
  'change-email': {
    subject: 'Confirm your new e-mail address',
    text: 'This address was entered as the new one of an account. If it was you, confirm it here:'
  },
  exists: {
    subject: 'You have an account already',
    text: 'A registration was started with your address. Sign in instead, or choose a new password there.'
  },
  'unknown-address': {
    subject: 'You have no account',
    text: 'A new password was requested for your address, but no account has it.'
  },
  'password-changed': {
    subject: 'Your password was changed',
    text: 'All other sessions have ended. If it was not you, choose a new password on the sign-in page at once.'
  },
  'email-changed': {
    subject: 'Your e-mail address was changed',
    text: 'Your account has another address now. If it was not you, answer this mail.'
  },
  'email-change-requested': {
    subject: 'A new e-mail address was requested',
    text: 'Your account gets another address once that is confirmed. If it was not you, change your password.'
  },
  'identity-linked': {
    subject: 'A new way to sign in was added',
    text: 'Your account can be signed in to in one more way. If it was not you, remove it and change your password.'
  }
}

/** Returns what a mail says. */
export function textOf ({ kind }: Mail): MailText {
  return TEXTS[kind]
}

/** Says how long the link of a mail works. */
export function lifetimeOf (seconds: number): string {
  const hours = seconds / 3600
  return hours < 1 ? `${seconds / 60} minutes` : `${hours} hours`
}
