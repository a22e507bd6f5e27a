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

/** A value in a template: markup is inserted as it is, text is escaped, absent values and `false` insert nothing. */
type Value = Html | string | number | null | undefined | false | readonly Value[]

/**
 * Makes markup. Pages are made by this function alone, so no text gets into a page unescaped.
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

/** Escapes text for use between tags and in a quoted attribute. */
function escaped (text: string): string {
  const tags = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return tags.replaceAll('"', '&quot;').replaceAll("'", '&#39;')
}
