export type { Texts } from './languages/en.js'

/** Puts values in place of the names in braces. */
export function filled (text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)
}

/** A length of time in words, such as `30 days`. */
export function timeIn (language: string, count: number, unit: 'second' | 'minute' | 'day'): string {
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
}

/** A day, in UTC: the server does not know the time zone of the browser. */
export function dateIn (language: string, date: Date): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(date)
}
