import { brand } from '../base/brand.js'

/** HTML that {@link html} made: everything in it is escaped. */
export class Html {
  static { brand(this, 'Html') }
  readonly source: string

  constructor (source: string) {
    this.source = source
  }
}

/** What HTML may hold: a text, which is escaped, other HTML, or a list of these. */
export type Content = string | Html | readonly Content[] | false | null | undefined

/** Makes HTML of a template. Absent values are empty. */
export function html (template: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(String.raw({ raw: template }, ...values.map(sourceOf)))
}

function sourceOf (value: Content): string {
  if (value === null || value === undefined || value === false) return ''
  if (typeof value === 'string') return value.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
  return value instanceof Html ? value.source : value.map(sourceOf).join('')
}
