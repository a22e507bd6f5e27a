import { shownEmail } from '../email.js'
import { type Content, type Html, html } from './html.js'
import type { english } from './languages/en.js'

/** The same texts in another language. */
type SameTexts<Part> = { readonly [Name in keyof Part]: Part[Name] extends string ? string : SameTexts<Part[Name]> }

/**
 * What the pages say in one language, as `en` says it: a language without one of its texts does not
 * compile. Names in braces are replaced and must stay.
 */
export type Texts = SameTexts<Omit<typeof english, 'direction'>> & {
  /** The direction of the script. */
  readonly direction: 'ltr' | 'rtl'
}

/** Puts values in place of the names in braces. */
export function filled (text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)
}

/**
 * Puts names, addresses and the like in place of the names in braces. No program translates them,
 * and their direction is their own.
 */
export function sentence (text: string, values: Readonly<Record<string, string>>): Html {
  const parts = text.split(/\{(\w+)\}/)
  return html`${parts.map((part, index) => index % 2 === 0 ? part : verbatim(values[part] ?? `{${part}}`))}`
}

/** A name, an address or a code: what no program translates. */
export function verbatim (value: string | null): Content {
  return value && html`<bdi translate="no">${shownEmail(value)}</bdi>`
}

/** A length of time in words, such as `30 days`. */
export function timeIn (language: string, count: number, unit: 'second' | 'minute' | 'day'): string {
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
}

/** A day, in UTC, and says so: the server does not know the time zone of the browser. */
export function dateIn (language: string, date: Date): string {
  return `${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(date)} (UTC)`
}
