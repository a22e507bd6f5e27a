/** The command line: `npx fastify-svc-auth`. What a command needs is loaded when it runs. */
import { AuthError, OptionsError } from '../errors.js'
import { COMMANDS, type Command } from './commands.js'
import { note, parse, print } from './options.js'

/** Runs a command. Returns the exit code: 0 done, 1 refused or failed, 2 wrong usage or setting. */
export async function run ([name = '', ...args]: readonly string[]): Promise<number> {
  const isJson = args.includes('--json')
  try {
    if (/^(?:-h|--help|help)$/.test(name)) return done(help())
    const command = COMMANDS.get(name)
    if (command === undefined) throw new OptionsError(unknown(name))
    const { values, positionals } = parse(args)
    if (values.help === true) return done(`${usageOf(name, command)}\n${command.does}.`)
    const isKnown = Object.keys(values).every(option => ['store', 'app', 'json', ...command.options].includes(option))
    const takesUser = command.takes.startsWith('<')
    if (!isKnown || positionals.length !== Number(takesUser)) throw new OptionsError(usageOf(name, command))
    const result = await command.run(values, String(positionals[0]))
    if ('url' in result && !isJson) return done(String(result.url))
    return done(JSON.stringify(result, null, isJson ? 0 : 2))
  } catch (error) {
    const { code, message, cause }: { code?: unknown, message?: unknown, cause?: unknown } = Object(error)
    const isUsage = error instanceof OptionsError || String(code).startsWith('ERR_PARSE_ARGS')
    if (!isUsage && !(error instanceof AuthError)) throw error
    const isOfStore = code === 'unavailable' && cause instanceof Error
    const reason = isOfStore ? `The database cannot be used: ${cause.message}` : message
    const sentence = String(reason).replaceAll(/\s+/g, ' ')
    note(isJson ? JSON.stringify({ code, message: sentence }) : sentence)
    return isUsage ? 2 : 1
  }
}

function done (text: string): 0 {
  print(text)
  return 0
}

function usageOf (name: string, { takes }: Command): string {
  return `Usage: npx fastify-svc-auth ${name} ${takes}`.trimEnd()
}

function help (): string {
  const lines = Array.from(COMMANDS, ([name, { takes, does }]) => `  ${`${name} ${takes}`.padEnd(38)} ${does}`)
  return `Usage: npx fastify-svc-auth <command> [--app <module>] [--store <db>] [--json]

${lines.join('\n')}

<user> is an e-mail or an id; the default export of <module> is the options of
the application; without it, links take --base-url, --issuer and --prefix. <db>
is an SQLite file or a postgres: URL; default: the application's, LOCAL_AUTH_DB
or ./local-auth.db.`
}

function unknown (name: string): string {
  const [nearest = ''] = [...COMMANDS.keys()].sort((a, b) => distance(name, a) - distance(name, b))
  const hint = distance(name, nearest) <= name.length / 2 ? ` Did you mean ${nearest}?` : ''
  return `There is no command "${name}".${hint} See npx fastify-svc-auth --help.`
}

/** How many letters are to be added, removed or replaced (Levenshtein). */
function distance (a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const letter of a) {
    const next = [Number(row[0]) + 1]
    for (const [index, other] of [...b].entries()) {
      const [diagonal, above, left] = [row[index], row[index + 1], next[index]].map(Number)
      next.push(Math.min(Number(above) + 1, Number(left) + 1, Number(diagonal) + Number(letter !== other)))
    }
    row = next
  }
  return Number(row.at(-1))
}
