import type { MailLanguage } from '../mail-language.js'

/** The mails in English. */
export const en: MailLanguage = {
  language: 'en',
  direction: 'ltr',
  hello: 'Hello,',
  helloName: 'Hello {name},',
  copyLink: 'If the button does not work, open this link:',
  lasts: 'This works for {time}.',
  ignore: 'If you did not ask for it, ignore this mail.',
  origin: 'Where this came from:',
  browser: 'Browser: {device}',
  unknownBrowser: 'unknown',
  time: 'Time: {time}',
  place: 'Place: {place}',
  account: 'Your account:',
  reason: 'This mail went to {to} because an account at {name} has this address, or someone entered it there.',
  support: 'Questions?',
  kinds: {
    register: {
      subject: 'Finish your registration',
      button: 'Create your account',
      text: 'Open the link to create your account.'
    },
    'verify-email': {
      subject: 'Confirm your e-mail address',
      button: 'Confirm the address',
      text: 'Your account has this address. Open the link to confirm that it is yours, or to say that it is not.'
    },
    'reset-password': {
      subject: 'Choose a new password',
      button: 'Choose a password',
      text: 'A new password was requested for your account. Open the link to choose it.'
    },
    'change-email': {
      subject: 'Confirm your new e-mail address',
      button: 'Confirm the address',
      text: 'Open the link to confirm that this is the new address of your account.'
    },
    'sign-in': {
      subject: 'Your sign-in link',
      button: 'Sign in',
      text: 'Open the link in the browser in which you asked for it, or type the code there, if there is one.'
    },
    enrolment: {
      subject: 'Your code',
      text: 'This code sets up a second factor, or stands in for passkeys that you have lost. ' +
        'If you are not doing that, someone knows your password: change it.'
    },
    exists: {
      subject: 'You already have an account',
      text: 'Someone tried to register with your address, which already has an account. ' +
        'If it was you, sign in instead. If not, there is nothing to do.'
    },
    'unknown-address': {
      subject: 'You do not have an account',
      text: 'Someone asked to sign in, or for a new password, with your address. No account has it. ' +
        'If it was not you, there is nothing to do.'
    },
    'password-changed': {
      subject: 'Your password was changed',
      text: 'Your account has a new password. All other sessions have ended. ' +
        'If this was not you, reset your password now.'
    },
    'email-proven': {
      subject: 'Your e-mail address was confirmed',
      text: 'This address was confirmed for the first time. Sign-in methods that were added before were removed. ' +
        'If this was not you, contact us at once.'
    },
    'email-changed': {
      subject: 'Your e-mail address was changed',
      text: 'The e-mail address of your account was changed. If this was not you, contact us at once.'
    },
    'email-change-requested': {
      subject: 'A new e-mail address was requested',
      text: 'Your account gets another e-mail address once that is confirmed. ' +
        'If this was not you, change your password.'
    },
    'email-disputed': {
      subject: 'Confirm your e-mail address',
      text: 'A provider no longer vouches for this address. Sign in, and confirm it on the page of your account.'
    },
    'identity-linked': {
      subject: 'A sign-in method was added',
      text: 'Your account has a new sign-in method. If this was not you, remove it and change your password.'
    },
    'identity-unlinked': {
      subject: 'A sign-in method was removed',
      text: 'A sign-in method of your account was removed. If this was not you, change your password.'
    },
    'factor-added': {
      subject: 'A second factor was added',
      text: 'Your account has a new second factor or passkey. If this was not you, remove it and change your password.'
    },
    'factor-removed': {
      subject: 'A second factor was removed',
      text: 'A second factor or passkey of your account was removed. If this was not you, change your password.'
    },
    'recovery-codes-renewed': {
      subject: 'Your recovery codes were replaced',
      text: 'Only the new recovery codes work. If this was not you, change your password and replace them.'
    },
    'recovery-code-used': {
      subject: 'A recovery code was used',
      text: 'Someone signed in with a recovery code. If this was not you, change your password and replace the codes.'
    },
    'too-many-codes': {
      subject: 'Someone is guessing codes for your account',
      text: 'Someone got as far as the second factor, and sent wrong codes. If this was not you, change your password.'
    },
    'passkey-cloned': {
      subject: 'A passkey was refused',
      text: 'There may be a copy of one of your passkeys. Remove that passkey and add a new one.'
    },
    'application-connected': {
      subject: 'An application was connected',
      text: 'An application can act for you now. If this was not you, disconnect it and change your password.'
    },
    'token-replayed': {
      subject: 'A connected application may have been copied',
      text: 'An old token of an application that you have connected was used. If in doubt, disconnect it.'
    },
    'key-created': {
      subject: 'An API key was created',
      text: 'Your account has a new API key. If this was not you, end it and change your password.'
    },
    impersonated: {
      subject: 'The support looked at your account',
      text: 'A person of our support saw the application as you see it. They could not change your account.'
    },
    'domain-lapsed': {
      subject: 'A domain of your sign-in connection is not proven any more',
      text: 'The DNS record that proves {domain} has been missing for a week. Until you add it again ' +
        'and have it checked, no user of the domain can join by your connection, which is required of nobody.'
    },
    'new-browser': {
      subject: 'A sign-in from a new browser',
      text: 'Someone signed in to your account from a browser that we have not seen before. ' +
        'If this was not you, end its session among your devices and change your password.'
    }
  }
}
