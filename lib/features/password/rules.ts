import { Once } from '../../base/concurrency.js'
import { isText } from '../../claims.js'
import { AuthError, COMMON_PASSWORD, wrongLength } from '../../errors.js'
import {
  type Checked, type ChecksOf, callable, checkedOptions, listOf, optional, orFalse, wholeNumber
} from '../../option-checks.js'
import type { PasswordCheck, PasswordContext } from './checks.js'
import { normalizePassword } from './hashing.js'

/** Options of {@link common}. */
export interface CommonOptions {
  /** Words of the application, such as its name and the name of its company; default none. */
  words?: readonly string[] | undefined
}

/** How many digits and signs do not make a word another password, as in `dragon-99!`. */
const MAX_ADDITIONS = 4

/** A longer password is accepted: it is not common, and takes longer to compare. */
const MAX_LENGTH = 64

/** What is shorter, after repetitions, is one of few. */
const MIN_LENGTH = 8

/** One character that is not a letter. */
const ADDITION = /^\P{L}$/u

/** A year, or three and more of one character. */
const FREE = /^(?:(?:19|20)\d\d|(.)\1{2,})$/u

/** Keys and letters that follow each other. Three or more of them in a row are a run. */
const ROWS = [
  'abcdefghijklmnopqrstuvwxyz', '01234567890', '!@#$%^&*()', '!"§$%&/()=',
  'qwertyuiop', 'asdfghjkl', 'zxcvbnm', 'qwertzuiop', 'yxcvbnm', 'azertyuiop', 'qsdfghjklm', 'wxcvbn',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p', 'qazwsxedcrfvtgbyhnujmikolp', '1q2w3e4r5t6y7u8i9o0p'
]

/** Digits and signs that stand for letters. `l` becomes `i`, because `1` stands for both. */
const LETTERS: Readonly<Record<string, string>> = {
  0: 'o', 1: 'i', l: 'i', '!': 'i', 3: 'e', 4: 'a', '@': 'a', 5: 's', $: 's', 7: 't'
}

/**
 * Makes a check that refuses the passwords that attackers try first: the 10,000 most used ones; a
 * common word with a few digits or signs, also with digits in place of letters or repeated; keys
 * that follow each other; years; the e-mail of the user, the `issuer` of the identity provider and
 * the words of the application. Several words are accepted.
 *
 * @throws OptionsError naming the option
 */
export function common (options: CommonOptions = {}): PasswordCheck {
  const checks = { words: optional(listOf("a list of words, such as ['shop']", isText), []) }
  const { words } = checkedOptions('common', options, checks, "{ words: ['shop'] }")
  return async (password, { email, issuer }) => {
    const known = await KNOWN.done()
    return isEasy(password.toLowerCase(), known, namesIn([email, issuer, ...words])) ? COMMON_PASSWORD : true
  }
}

/** The lists, loaded with the first password. */
const KNOWN = new Once(async () => {
  const [{ COMMON_PASSWORDS }, { COMMON_WORDS }] =
    await Promise.all([import('./common-passwords.js'), import('./common-words.js')])
  const runs = ROWS.map(row => Array.from(row)).flatMap(row => [...runsIn(row), ...runsIn(row.toReversed())])
  return {
    passwords: new Set(wordsIn(COMMON_PASSWORDS)),
    words: new Set(wordsIn(COMMON_WORDS).map(spelling)),
    /** In both directions. */
    runs: new Set(runs)
  }
})

type Known = Awaited<ReturnType<typeof KNOWN.done>>

function wordsIn (text: string): string[] {
  return text.trim().split(/\s/)
}

/** Returns the names in addresses and the like, with and without their digits. */
function namesIn (texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.flatMap(text => {
    const lowerCase = text.normalize('NFKC').toLowerCase()
    return [...lowerCase.split(/[^\p{L}\p{N}]+/u), ...lowerCase.split(/\P{L}+/u)]
  }))
}

/**
 * Whether a password in lower case is one of the most used, or made of names, runs, years, at most
 * one common word, and at most {@link MAX_ADDITIONS} other characters that are not letters.
 */
function isEasy (password: string, { passwords, words, runs }: Known, names: ReadonlySet<string>): boolean {
  if (passwords.has(password)) return true
  if (password.length > MAX_LENGTH) return false
  const text = password.slice(0, (password + password).indexOf(password, 1))
  if (text.length < MIN_LENGTH) return true
  const spelled = spelling(text)

  // For each beginning of the text, the fewest additions without a common word, and with one.
  let fewest = { bare: 0, worded: Infinity }
  const beginnings = [fewest]
  while (beginnings.length <= text.length) {
    const end = beginnings.length
    fewest = { bare: Infinity, worded: Infinity }
    for (const [start, { bare, worded }] of beginnings.entries()) {
      const part = text.slice(start, end)
      const isFree = names.has(part) || runs.has(part) || FREE.test(part)
      const additions = isFree ? 0 : ADDITION.test(part) ? 1 : Infinity
      const afterWord = words.has(spelled.slice(start, end)) ? bare : Infinity
      fewest.bare = Math.min(fewest.bare, bare + additions)
      fewest.worded = Math.min(fewest.worded, worded + additions, afterWord)
    }
    beginnings.push(fewest)
  }
  return Math.min(fewest.bare, fewest.worded) <= MAX_ADDITIONS
}

/** Returns a text with letters in place of the digits and signs that stand for them. */
function spelling (text: string): string {
  return Array.from(text, character => LETTERS[character] ?? character).join('')
}

function runsIn (row: readonly string[]): string[] {
  return row.flatMap((_, start) => row.slice(start + 2).map((_, more) => row.slice(start, start + 3 + more).join('')))
}

/** Rules for new passwords, in addition to a length of 8 to 1024 bytes. */
export interface PasswordRules {
  /**
   * Called when a password is chosen, not at sign-in; default `common()`, which refuses the
   * passwords that attackers try first; false for none.
   */
  check?: PasswordCheck | false | undefined
  /**
   * The least number of characters as a user counts them, after NFKC, from 8 to 128; default 8, for
   * which 8 bytes are enough.
   */
  minLength?: number | undefined
}

/** Asks for nothing beyond {@link normalizePassword}. */
export const MIN_PASSWORD_LENGTH = 8

/** The options of rules for new passwords. */
export const PASSWORD_RULES = {
  check: optional(orFalse(callable<PasswordCheck>('(password, { email }) => boolean or a sentence')), common()),
  minLength: optional(wholeNumber(MIN_PASSWORD_LENGTH, 128, 'characters'), MIN_PASSWORD_LENGTH)
} satisfies ChecksOf<PasswordRules>

/** Makes the function that checks new passwords: it resolves to the password in NFKC. */
export function passwordRules (
  { check, minLength }: Checked<typeof PASSWORD_RULES>
): (password: string, context: PasswordContext) => Promise<string> {
  const refusal = minLength === MIN_PASSWORD_LENGTH ? {} : { message: wrongLength(minLength) }

  return async (password, context) => {
    const normalized = normalizePassword(password)
    if (normalized === null || !hasCharacters(normalized, minLength)) {
      throw new AuthError('weak_password', refusal)
    }
    const verdict = check === null || await check(normalized, context)
    if (verdict !== true) throw new AuthError('weak_password', typeof verdict === 'string' ? { message: verdict } : {})
    return normalized
  }
}

/** Whether a text has so many characters as a user counts them: an emoji is one. */
function hasCharacters (text: string, count: number): boolean {
  return count === MIN_PASSWORD_LENGTH || Array.from(new Intl.Segmenter().segment(text)).length >= count
}
