/** Markup that is safe to send as it is. */
export class Html {
  readonly markup: string

  constructor (markup: string) {
    this.markup = markup
  }
}

/** Markup is inserted as it is, text is escaped, absent values and `false` insert nothing. */
type Value = Html | string | number | null | undefined | false | readonly Value[]

/** Makes markup. Pages are made by this function alone, so no text gets into a page unescaped. */
export function html (literals: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(String.raw({ raw: literals }, ...values.map(markupOf)))
}

function markupOf (value: Value): string {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.markup
  if (typeof value === 'object') return value.map(markupOf).join('')
  return String(value).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}
