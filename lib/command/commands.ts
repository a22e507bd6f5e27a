/** The command line: `npx fastify-svc-auth`. What a command needs is loaded when it runs. */
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { User } from '../accounts/account.js'
import { Accounts } from '../accounts/accounts.js'
import type { Authorization } from '../features/app-auth/authorization.js'
import { audit } from '../audit.js'
import { isUserId } from '../base/values.js'
import { isPlainObject } from '../claims.js'
import { AuthError, OptionsError } from '../errors.js'
import type { KeyOwner } from '../features/api-keys/made-keys.js'
import { type CreateUserHook, assertAsksHook } from '../hooks.js'
import type { GivenOptions } from '../options.js'
import { shownSession } from '../session/record.js'
import type { SqlAuthStore } from '../engines/sql.js'
import { newKey } from '../features/tokens/token-keys.js'
import { OF_LINKS, type OptionName, type ParsedOptions, note, parse, print } from './options.js'

interface Command {
  /** What follows the name. */
  readonly takes: string
  readonly does: string
  readonly options: readonly OptionName[]
  /** Returns what is printed. */
  readonly run: (values: ParsedOptions, who: string) => Promise<object>
}

/** Who did it, in audit events. */
const CAUSE = { actor: `command:${userInfo().username}` }
/** A line each, apart from the output. */
const LOG = { info: (entry: object) => { note(JSON.stringify({ time: new Date(), ...entry })) } }

/** The commands, in the order of the help. Each is one call: the rules are in what it calls. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map(Object.entries<Command>({
  migrate: {
    takes: '[--check]',
    does: 'Make the tables, or update them',
    options: ['check'],
    run: async values => withStore(values, values.check !== true, async (store, missing) => {
      if (values.check !== true) await store.migrate()
      return { migrated: missing }
    })
  },
  create: {
    takes: '<email> [--claim k=v]...',
    does: 'Create a user; with --app: a link',
    options: ['claim', ...OF_LINKS],
    async run (values, email) {
      const wantsLink = values.app !== undefined || OF_LINKS.some(name => values[name] !== undefined)
      const makeLink = wantsLink ? await linkMaker(values) : null
      const { onCreateUser = null } = await optionsOfApp(values) ?? {}
      return withAuthorization(values, async (auth, store) => {
        const user = await auth.createUser({ email, emailVerified: true, claims: claimsIn(values) }, CAUSE)
        if (values.app === undefined) note('A hook onCreateUser of the application runs only with --app.')
        return makeLink === null ? user : { ...user, ...await makeLink(store, user, true) }
      }, onCreateUser)
    }
  },
  show: ofUser('', 'Show a user and what belongs to them', [], async (auth, user, _values, store) =>
    shown(auth, user, store)),
  grant: ofUser('--claim k=v...', 'Grant claims; k:=v for JSON', ['claim'], async (auth, user, values) => {
    warnOfUnconfirmed(user)
    return auth.grant(user.userId, claimsIn(values), CAUSE)
  }),
  withdraw: ofUser('--claim k...', 'Withdraw claims', ['claim'], async (auth, { userId }, { claim = [] }) =>
    auth.withdraw(userId, claim, CAUSE)),
  block: ofUser('[--until t] [--reason s]', 'Block a user; end their sessions', ['until', 'reason'],
    async (auth, { userId }, { until, reason }) =>
      auth.block(userId, { ...CAUSE, reason, until: until === undefined ? until : new Date(until) })),
  unblock: ofUser('', 'Remove the block', [], async (auth, { userId }) => auth.unblock(userId, CAUSE)),
  'sign-out': ofUser('', 'End all sessions and tokens of a user', [], async (auth, { userId }) => {
    await auth.signOutEverywhere(userId, CAUSE)
    return { userId }
  }),
  'reset-factors': ofUser('', 'Remove second factors and passkeys', [], async (auth, { userId }) =>
    auth.resetFactors(userId, CAUSE)),
  link: ofUser('', 'Print a link that signs in once', OF_LINKS, async (_auth, user, values, store) => {
    warnOfUnconfirmed(user)
    const link = await (await linkMaker(values))(store, user, false)
    audit('sign-in-link', { userId: user.userId }, { log: LOG, ...CAUSE })
    return link
  }),
  key: {
    takes: '[--alg a] [--not-before t]',
    does: 'Print a new key that signs tokens',
    options: ['alg', 'not-before'],
    run: async ({ alg, 'not-before': notBefore }) => newKey(alg, notBefore)
  },
  'api-key create': {
    takes: '<owner> --name n --scope s',
    does: 'Make a key; also --expires-in days',
    options: ['name', 'scope', 'expires-in', 'key-prefix'],
    run: async (values, who) => withAuthorization(values, async (auth, store) => {
      const { makeKey } = await import('./api-keys.js')
      const owner = await ownerOf(auth, who)
      return makeKey(store, owner, values, { options: await optionsOfApp(values), source: { log: LOG, ...CAUSE } })
    })
  },
  'api-key list': {
    takes: '<owner>',
    does: 'List the API keys of an owner',
    options: [],
    run: async (values, who) => withAuthorization(values, async (auth, store) =>
      (await import('./api-keys.js')).keysOf(store, await ownerOf(auth, who)))
  },
  'api-key end': {
    takes: '<id>',
    does: 'End an API key',
    options: [],
    run: async (values, id) => withStore(values, false, async store => {
      if (await (await import('./api-keys.js')).removeKey(store, id, { log: LOG, ...CAUSE })) return { id }
      throw new AuthError('not_found', { message: `There is no API key with the id ${id}.` })
    })
  },
  mails: {
    takes: '--out dir',
    does: 'Write each mail as HTML and text',
    options: ['out'],
    async run ({ out, app }) {
      if (out === undefined) throw new OptionsError('mails needs --out, the folder that it writes to')
      return (await import('./mails.js')).writeMails(out, app === undefined ? null : await moduleOf(app))
    }
  },
  delete: ofUser('--yes', 'Delete a user', ['yes'], async (auth, { userId }, { yes }) => {
    if (!yes) throw new OptionsError('delete needs --yes: a user that is deleted cannot be restored')
    await auth.deleteUser(userId, CAUSE)
    return { userId }
  }),
  export: ofUser('', 'Print what is kept about a user', [], async (auth, user, _values, store) => {
    const known = await shown(auth, user, store)
    const local = known.links.find(({ provider }) => provider === 'local')
    const credential = local === undefined ? null : await new Accounts(store).findCredential(local.subject)
    const sessions = await store.sessions.ofUser(user.userId, user.generation, Date.now())
    return {
      ...known,
      hasPassword: credential !== null,
      sessions: sessions.map(shownSession)
    }
  })
}))

async function shown (auth: Authorization, user: User, store: SqlAuthStore) {
  const { unused } = await store.tables()
  // Its tables may not be there, where no application has the option.
  const clients = unused.includes('grants')
    ? null
    : await (await import('../features/oauth-server/account.js')).clientsOf(store.featureTables, user)
  const keys = unused.includes('keys')
    ? null
    : await (await import('./api-keys.js')).keysOf(store, { userId: user.userId })
  return {
    ...user,
    links: await auth.links(user.userId),
    factors: await auth.factors(user.userId),
    ...(clients && { clients }),
    ...(keys && { keys })
  }
}

/** The user of an e-mail or an id, else what the application calls an owner of keys. */
async function ownerOf (auth: Authorization, who: string): Promise<KeyOwner> {
  if (!who.includes('@') && !isUserId(who)) return { owner: who }
  const user = await auth.findUser(who.includes('@') ? { email: who } : { userId: who })
  if (user === null) throw noUser(who)
  return { userId: user.userId }
}

function noUser (who: string): AuthError {
  return new AuthError('unknown_user', { message: `No user has the e-mail or the id ${who}.` })
}

/** Anyone can register with an address, and prepare the account that its owner then gets. */
function warnOfUnconfirmed ({ email, emailVerified }: User): void {
  if (email !== null && !emailVerified) note('The e-mail is not confirmed: make sure that it is theirs.')
}

function ofUser (
  takes: string, does: string, options: readonly OptionName[],
  act: (auth: Authorization, user: User, values: ParsedOptions, store: SqlAuthStore) => Promise<object>
): Command {
  return {
    takes: `<user> ${takes}`.trimEnd(),
    does,
    options,
    run: async (values, who) => withAuthorization(values, async (auth, store) => {
      const user = await auth.findUser(isUserId(who) ? { userId: who } : { email: who })
      if (user === null) throw noUser(who)
      return act(auth, user, values, store)
    })
  }
}

async function withAuthorization (
  values: ParsedOptions,
  work: (auth: Authorization, store: SqlAuthStore) => Promise<object>,
  onCreateUser: CreateUserHook | null = null
): Promise<object> {
  const { Authorization } = await import('../features/app-auth/authorization.js')
  return withStore(values, false, async store => {
    if (onCreateUser !== null) await assertAsksHook(store, onCreateUser)
    return work(new Authorization(store, LOG, null, onCreateUser), store)
  })
}

/** Works on tables as this version has them; if they may be missing, on older ones and on none. */
async function withStore (
  values: ParsedOptions,
  mayLack: boolean,
  work: (store: SqlAuthStore, missing: readonly string[]) => Promise<object>
): Promise<object> {
  const store = await storeOf(values)
  try {
    const { missing: all, needed, unknown } = await store.tables(mayLack)
    // Without its options a command does not know whether a feature has tables to miss.
    const missing = mayLack ? all : needed
    if (unknown.length > 0) {
      throw unsupported(`The database is of a newer version, with ${unknown.join(', ')}; install that version.`)
    }
    if (missing.length > 0 && !mayLack) {
      throw unsupported(`The database lacks ${missing.join(', ')}; run: npx fastify-svc-auth migrate`)
    }
    return await work(store, missing)
  } finally {
    await store.close()
  }
}

async function storeOf (values: ParsedOptions): Promise<SqlAuthStore> {
  const { store: target } = values
  if (target !== undefined && hasPassword(target)) {
    throw new OptionsError('--store has a password, which the list of processes shows; set LOCAL_AUTH_DB to the URL')
  }
  const { SqlAuthStore } = await import('../engines/sql.js')
  if (target !== undefined || values.app === undefined) return new SqlAuthStore(target)
  const options = await optionsOfApp(values)
  if (options?.store instanceof SqlAuthStore) return options.store
  throw new OptionsError('--app must export a SqlAuthStore as its store: another process cannot read one in memory')
}

/** Several hosts make what is no URL to Node.js. */
function hasPassword (target: string): boolean {
  const [login = '', query = ''] = target.split(/\?(.*)/s)
  return /:\/\/[^/#:]*:[^/#]+@/.test(login) || [...new URLSearchParams(query).keys()].some(name => /passw/i.test(name))
}

function unsupported (message: string): AuthError {
  return new AuthError('unsupported', { message })
}

/** Checks the settings of links; they are loaded for links alone. */
async function linkMaker (values: ParsedOptions) {
  return (await import('./links.js')).linkMaker(values, await optionsOfApp(values))
}

/** Returns the options that the module of `--app` exports; null without it. */
async function optionsOfApp ({ app }: ParsedOptions): Promise<GivenOptions | null> {
  if (app === undefined) return null
  const { default: options } = await moduleOf(app)
  if (isPlainObject(options)) return options
  throw new OptionsError('--app must name a module whose default export is the options of the plugin')
}

async function moduleOf (app: string): Promise<Readonly<Record<string, unknown>>> {
  return import(pathToFileURL(resolve(app)).href).catch((cause: unknown) => {
    const remedy = app.endsWith('ts') ? ' (NODE_OPTIONS=--import=tsx loads TypeScript that Node.js does not)' : ''
    throw new OptionsError(`--app cannot be loaded${remedy}: ${Object(cause).message ?? cause}`)
  })
}

/** `k=v` is a text, `k:=v` the JSON value v. */
function claimsIn ({ claim: claims = [] }: ParsedOptions): Record<string, string> {
  return Object.fromEntries(claims.map(claim => {
    const [, name, isJson, value = ''] = /^([^=]+?)(:?)=(.*)$/s.exec(claim) ?? []
    try {
      if (name !== undefined) return [name, isJson === ':' ? JSON.parse(value) : value]
    } catch {}
    throw new OptionsError(`--claim must be name=value, or name:=JSON such as 'roles:=["admin"]'; it is ${claim}`)
  }))
}

/** Runs a command. Returns the exit code: 0 done, 1 refused or failed, 2 wrong usage or setting. */
export async function run ([first = '', ...others]: readonly string[]): Promise<number> {
  const isLong = COMMANDS.has(`${first} ${others[0]}`)
  const [name, args] = isLong ? [`${first} ${others[0]}`, others.slice(1)] : [first, others]
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

<user>: an e-mail or id; <owner>: also a name such as job:nightly. <module>: its
default export is the application's options, mails those of mailTexts; links
without it take --base-url, --issuer and --prefix, keys --key-prefix. <db>: an
SQLite file or postgres: URL; default the application's, or LOCAL_AUTH_DB.`
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
