/** Markup that is safe to send as it is. */
export class Html {
  readonly #markup: string

  constructor (markup: string) {
    this.#markup = markup
  }

  toString (): string {
    return this.#markup
  }
}

/** What a template takes: markup goes in as it is, text is escaped, nothing leaves nothing behind. */
type Value = Html | string | number | null | undefined | false | readonly Value[]

/**
 * Makes markup. It is the only way to make any, so nothing gets into a page unescaped.
 *
 * @example
 * ```ts
 * html`<p>Hello ${name}</p>`
 * ```
 */
export function html (literals: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(String.raw({ raw: literals }, ...values.map(markupOf)))
}

function markupOf (value: Value): string {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.toString()
  return typeof value === 'object' ? value.map(markupOf).join('') : escaped(String(value))
}

/** Harmless between tags and in a quoted attribute. */
function escaped (text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')
}
