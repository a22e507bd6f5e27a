import { parseArgs } from 'node:util'

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

const [TEXT, FLAG] = [{ type: 'string' }, { type: 'boolean' }] as const

const OPTIONS = {
  store: TEXT,
  app: TEXT,
  json: FLAG,
  help: { ...FLAG, short: 'h' },
  check: FLAG,
  claim: { ...TEXT, multiple: true },
  'base-url': TEXT,
  prefix: TEXT,
  issuer: TEXT,
  until: TEXT,
  reason: TEXT,
  alg: TEXT,
  'not-before': TEXT,
  yes: FLAG,
  name: TEXT,
  scope: { ...TEXT, multiple: true },
  'expires-in': TEXT,
  'key-prefix': TEXT,
  out: TEXT
} as const

/** What makes links, as the application has it. */
export const OF_LINKS = ['base-url', 'issuer', 'prefix'] as const

export type ParsedOptions = ReturnType<typeof parse>['values']

export type OptionName = keyof typeof OPTIONS

export function parse (args: string[]) {
  return parseArgs({ args, options: OPTIONS, allowPositionals: true })
}
