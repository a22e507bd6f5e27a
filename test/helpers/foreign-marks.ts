/** The punctuation of other scripts, by language: its own text has none of it, besides names in braces. */
const FOREIGN: Readonly<Record<string, RegExp>> = { ar: /[,;?“”"']/, ja: /[,.;:?!“”()"']|[、。] / }

/** The first mark of a text that belongs to another script; undefined for none. */
export function foreignMarkIn (text: string, language: string): string | undefined {
  return FOREIGN[language]?.exec(text.replace(/\{\w+\}/g, 'x'))?.[0]
}
