import { parseArgs } from 'node:util'

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
  yes: FLAG
} as const

/** What makes links, as the application has it. */
export const OF_LINKS = ['base-url', 'issuer', 'prefix'] as const

export type Values = ReturnType<typeof parse>['values']

export type OptionName = keyof typeof OPTIONS

export function parse (args: string[]) {
  return parseArgs({ args, options: OPTIONS, allowPositionals: true })
}
