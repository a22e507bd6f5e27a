/** A text that each text with a prefix is less than, compared by code points. */
export function endOfPrefix (prefix: string): string {
  return `${prefix}\u{10ffff}`
}
