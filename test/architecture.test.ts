import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'

const LIB = join(import.meta.dirname, '../lib')

const BASICS = ['ground', 'base']
/** What nobody is signed in for, and no request is answered by. */
const PARTS = [
  'providers', 'port', 'local', 'tokens', 'passwords', 'mails', 'accounts', 'factors', 'store', 'session', 'http',
  'hooks', ...BASICS
]
/** What works with the context of the application. */
const USERS = ['context', 'current-user', 'sign-in']

/** The rooms that the modules of a room may import, besides their own. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  ground: ['base'],
  schema: BASICS,
  drizzle: ['schema'],
  port: BASICS,
  // A signed request has the parameters of a provider.
  http: ['port', ...BASICS],
  providers: ['port', 'http', ...BASICS],
  tokens: ['http', ...BASICS],
  passwords: ['http', ...BASICS],
  // An account keeps what the column of its extras has.
  accounts: ['schema', ...BASICS],
  hooks: ['port', 'accounts', ...BASICS],
  store: ['accounts', 'drizzle', 'schema', ...BASICS],
  // A link says what the rules of an account compare, and a used one is noted.
  mails: ['tokens', 'accounts', 'store', ...BASICS],
  local: ['tokens', 'passwords', 'mails', ...BASICS],
  // The titles of the pages behind links are named by the kinds of mails.
  pages: ['mails', 'http', ...BASICS],
  factors: ['accounts', 'tokens', ...BASICS],
  // A pending sign-in holds what was asked of its provider.
  session: ['port', 'http', 'accounts', 'store', 'schema', ...BASICS],
  // The types of what it holds, most of which come from the options.
  context: ['options', 'pages', 'web', ...PARTS],
  'current-user': ['context', ...PARTS],
  'sign-in': ['context', 'current-user', ...PARTS],
  web: ['context', 'current-user', 'pages', ...PARTS],
  actions: [...USERS, 'web', 'pages', ...PARTS],
  'app-auth': [...USERS, ...PARTS.filter(room => room !== 'providers')],
  options: ['pages', ...PARTS],
  plugin: [...USERS, 'options', 'actions', 'app-auth', 'web', 'pages', ...PARTS],
  command: ['options', 'app-auth', ...PARTS],
  testing: ['web', 'app-auth', ...PARTS],
  // An application names what the columns of the tables hold.
  index: [...USERS, 'plugin', 'options', 'app-auth', 'web', 'schema', ...PARTS]
}

/** Files that are rooms by themselves; the other files directly in `lib/` are the ground. */
const SINGLE_FILES: Readonly<Record<string, string>> = {
  'options.ts': 'options',
  'context.ts': 'context',
  'hooks.ts': 'hooks',
  'plugin.ts': 'plugin',
  'index.ts': 'index',
  'pages.ts': 'pages',
  'passkeys.ts': 'factors',
  'second-factor.ts': 'factors',
  'passwords.ts': 'passwords',
  'testing.ts': 'testing',
  'local-identity-provider.ts': 'local',
  'providers/provider.ts': 'port'
}

/** Arrows between the engines of the store: what both need stands beside them. */
const ENGINES = ['store/memory/', 'store/postgres/', 'store/sqlite/']

function roomOf (file: string): string {
  return SINGLE_FILES[file] ?? (file.includes('/') ? dirname(file).split('/', 1).join() : 'ground')
}

const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.ts'))

/** The files that each file imports, types and dynamic imports included. */
const imports = new Map(files.map(file => {
  const source = readFileSync(join(LIB, file), 'utf8')
  const specifiers = source.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)
  return [file, Array.from(specifiers, ([, specifier = '']) =>
    relative(LIB, join(LIB, dirname(file), specifier)).replace(/\.js$/, '.ts'))]
}))

t.test('every import points down', async t => {
  const upward = [...imports].flatMap(([file, imported]) => imported
    .filter(other => roomOf(other) !== roomOf(file) && ROOMS[roomOf(file)]?.includes(roomOf(other)) !== true)
    .map(other => `${file} imports ${other}`))

  t.strictSame(upward, [])
})

t.test('no engine of the store imports another one, and what is beside them opens them when they are used', async t => {
  const engineOf = (file: string): string | undefined => ENGINES.find(engine => file.startsWith(engine))
  const crossing = [...imports].flatMap(([file, imported]) => imported
    .filter(other => engineOf(other) !== undefined && engineOf(file) !== undefined && engineOf(other) !== engineOf(file))
    .map(other => `${file} imports ${other}`))

  t.strictSame(crossing, [])
  t.strictSame(imports.get('store/sql-target.ts')?.filter(other => engineOf(other) !== undefined), [])
})

t.test('what runs comes from drizzle-orm by way of lib/drizzle, which the build bundles, and of the exported tables', async t => {
  const importing = files.filter(file => /^(?:import|export) (?!type\b)[^']* from 'drizzle-orm/m.test(readFileSync(join(LIB, file), 'utf8')))

  t.strictSame(importing.filter(file => !/^(?:drizzle|schema)\//.test(file)), [])
})

t.test('no modules import each other in a circle, types included', async t => {
  const circles: string[] = []
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file)
    if (start >= 0) circles.push([...path.slice(start), file].join(' -> '))
    if (start >= 0 || done.has(file)) return
    for (const other of imports.get(file) ?? []) visit(other, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])

  t.strictSame(circles, [])
})

t.test('accounts are reached through Accounts alone', async t => {
  const members = 'findUser|links|factors|findCredential|status|users|insert|change'
  const calling = files.filter(file => !/^(?:accounts|store|testing\/store-contract)\//.test(file) &&
    new RegExp(`\\bstore\\.(?:${members})\\b`).test(readFileSync(join(LIB, file), 'utf8')))

  t.strictSame(calling, [])
})

t.test('every import leads to a file of lib/, and every room has a rule', async t => {
  const missing = [...imports].flatMap(([file, imported]) => imported
    .filter(other => !imports.has(other))
    .map(other => `${file} imports ${other}`))

  t.strictSame(missing, [])
  t.strictSame([...new Set(files.map(roomOf))].filter(room => !(room in ROOMS)), [])
})
