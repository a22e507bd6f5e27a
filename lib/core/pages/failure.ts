import { NOT_THIS_ADDRESS } from '../../email.js'
import {
  type AuthError, COMMON_PASSWORD, ERRORS, PASSKEY_EXISTS, PASSKEY_REFUSED, SENT_TWICE, SHOWN_TO_ANOTHER,
  WRONG_PASSWORD, WRONG_SET_UP_CODE, wrongLength
} from '../../errors.js'
import type { PageMessages } from './layout.js'
import { type Texts, button, filled, timeIn } from './elements.js'

/** Sentences of the plugin that are not those of a code. */
const OWN_TEXTS: ReadonlyMap<string, keyof Texts['errors']> = new Map([
  [NOT_THIS_ADDRESS, 'not_this_address'], [PASSKEY_REFUSED, 'passkey_refused'], [PASSKEY_EXISTS, 'passkey_exists'],
  [COMMON_PASSWORD, 'common_password'], [WRONG_PASSWORD, 'wrong_password'],
  [SHOWN_TO_ANOTHER, 'shown_to_another'], [WRONG_SET_UP_CODE, 'wrong_set_up_code'],
  [SENT_TWICE, 'sent_twice'],
  // Of an error of the application with a code of its own.
  [ERRORS.internal_error[1], 'internal_error']
])

/** Returns the sentence of an error code in a language. */
export function sentenceOf ({ errors, signIn: { forgot } }: Texts, code: string): string {
  return Object.hasOwn(errors, code) ? filled(errors[code as keyof typeof errors], { forgot }) : errors.other
}

/**
 * Returns the sentence of an error in a language; the application's own where it has one, such as
 * what `password.check` says of a password.
 */
export function failureOf (texts: Texts, error: AuthError): string {
  const { code, message, retryAfter } = error
  const ownText = OWN_TEXTS.get(message)
  if (ownText !== undefined) return texts.errors[ownText]
  const isOfCode = Object.hasOwn(ERRORS, code)
  // With the number of `password.minLength`.
  const isOwn = message === ERRORS.weak_password[1] || message.replace(/\d+/, '0') === wrongLength(0)
  if (!isOfCode || (code === 'weak_password' && !isOwn)) return message
  if (code !== 'rate_limited' || retryAfter === undefined) return sentenceOf(texts, code)
  return filled(texts.errors.rate_limited_wait, { time: duration(texts.language, retryAfter) })
}

/** The fields that the failures of a form are about: the first one that it has. */
const FIELDS = new Map([
  ['invalid', ['current', 'password']], ['weak_password', ['password']], ['breached_password', ['password']],
  ['invalid_email', ['email']], ['exists', ['email']], ['invalid_code', ['code', 'mailCode']]
])

/** Returns what a page says of the failure of its form. */
export function messagesOf (texts: Texts, error: AuthError): PageMessages {
  const { code, details: { url, label } } = error
  const isOfConnection = code === 'sso_required' && typeof url === 'string' && typeof label === 'string'
  const way = isOfConnection && button(url, filled(texts.signIn.withProvider, { provider: label }), 'primary')
  return { failure: failureOf(texts, error), way, fields: FIELDS.get(code) ?? [] }
}

/** A time to wait in words. */
export function duration (language: string, seconds: number): string {
  return seconds < 60 ? timeIn(language, seconds, 'second') : timeIn(language, Math.ceil(seconds / 60), 'minute')
}
