/** Characters that a terminal obeys, or that change the direction of what it shows. */
const OBEYED = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/**
 * Writes text, and a line break. Users write names and browsers: what a terminal would obey is
 * escaped, as JSON has it.
 */
export function print (text: string, stream: NodeJS.WritableStream = process.stdout): void {
  const shown = text.replace(OBEYED, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  stream.write(`${shown}\n`)
}

/** Writes beside the output. */
export function note (text: string): void {
  print(text, process.stderr)
}
