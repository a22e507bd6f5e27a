/** The scopes of what other programs are allowed, with what users read about them. */
import { isPlainObject, isText } from '../claims.js'
import { mustBe } from '../option-checks.js'

/** What a scope allows, for users: one text, or texts by language. */
export type ScopeText = string | Readonly<Record<string, string>>

/** RFC 6749 section 3.3 */
const SCOPE = /^[!#-[\]-~]+$/

export function isScope (value: unknown): value is string {
  return typeof value === 'string' && SCOPE.test(value)
}

/** An option with what scopes allow, by their names. */
export const scopeTexts = mustBe("an object of what scopes allow, such as { 'notes:read': 'Read your notes' }",
  (value): value is Record<string, ScopeText> => isPlainObject(value) && Object.entries(value).every(([scope, words]) =>
    isScope(scope) && (isText(words) ||
      (isPlainObject(words) && Object.values(words).every(isText) && Object.keys(words).length > 0))))

/** Returns what a scope allows in a language, else in the first one. */
export function wordsIn (words: ScopeText, language: string): string {
  if (typeof words === 'string') return words
  const [tag = ''] = language.split('-')
  return words[language] ?? words[tag] ?? Object.values(words)[0] ?? ''
}
