/** HTML that {@link html} made: everything in it is escaped. */
export class Html {
  readonly source: string

  constructor (source: string) {
    this.source = source
  }
}

type Value = string | Html | ReadonlyArray<Html | null> | null

/** Makes HTML of a template. Texts in it are escaped; absent values are empty. */
export function html (template: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(String.raw({ raw: template }, ...values.map(sourceOf)))
}

function sourceOf (value: Value): string {
  if (value === null) return ''
  if (typeof value === 'string') return value.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
  return value instanceof Html ? value.source : value.map(sourceOf).join('')
}
