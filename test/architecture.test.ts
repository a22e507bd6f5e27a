import { join } from 'node:path/posix'
import t from 'tap'
import { LIBRARY } from './helpers/library.js'

const BASICS = ['ground', 'base']
/** What the kernel is made of, and may ask besides. */
const BELOW = ['http', 'accounts', 'store', 'session', 'port', 'providers', 'hooks', ...BASICS]

interface Room {
  /** Its files and folders; the one that names most of a path is the room of the file. */
  readonly has: readonly string[]
  /** The rooms that its modules may import, besides their own. */
  readonly asks: readonly string[]
}

const ROOMS: Readonly<Record<string, Room>> = {
  base: { has: ['base/'], asks: [] },
  // The other files directly in `lib/`.
  ground: { has: [], asks: ['base'] },
  schema: { has: ['schema/'], asks: BASICS },
  drizzle: { has: ['drizzle/'], asks: ['schema'] },

  accounts: {
    has: ['accounts/'],
    // An account keeps what the column of its extras has.
    asks: ['schema', ...BASICS]
  },

  port: { has: ['providers/provider.ts'], asks: BASICS },
  // What fetches from a provider, and judges URLs.
  http: { has: ['fetching', 'redirects', 'redirect-pages', 'site'].map(name => `core/${name}.ts`), asks: BASICS },
  providers: { has: ['providers/'], asks: ['port', 'http', ...BASICS] },
  hooks: { has: ['hooks.ts'], asks: ['port', 'accounts', ...BASICS] },

  // What a store keeps besides accounts.
  store: { has: ['session/store.ts', 'session/sql-database.ts', 'session/feature-tables.ts'], asks: ['accounts', 'schema', ...BASICS] },
  session: { has: ['session/'], asks: ['http', 'accounts', 'store', 'schema', ...BASICS] },
  engines: { has: ['engines/'], asks: ['store', 'accounts', 'drizzle', 'schema', ...BASICS] },

  // The kernel: no feature and no engine, types included.
  core: { has: ['core/'], asks: BELOW },
  features: {
    has: [
      'features.ts',
      'features/',
      ...['api-keys', 'connections', 'mails', 'oauth-server', 'pages', 'passkeys', 'passwords', 'second-factor'].map(name => `${name}.ts`)
    ],
    // Those with tables of their own build the statements on them.
    asks: ['core', 'drizzle', 'schema', ...BELOW]
  },

  options: { has: ['options.ts'], asks: ['features', 'core', 'engines', ...BELOW] },
  plugin: { has: ['plugin.ts'], asks: ['options', 'features', 'core', 'engines', ...BELOW] },
  command: { has: ['command/'], asks: ['options', 'features', 'core', 'engines', ...BELOW] },
  testing: { has: ['testing.ts', 'testing/'], asks: ['features', 'core', 'engines', ...BELOW] },
  index: {
    has: ['index.ts'],
    // An application names what the columns of the tables hold.
    asks: ['plugin', 'options', 'features', 'core', 'engines', 'schema', ...BELOW]
  }
}

/** Arrows between the engines of the store: what both need stands beside them. */
const ENGINES = ['engines/memory/', 'engines/postgres/', 'engines/sqlite/']

function roomOf (file: string): string {
  const named = Object.entries(ROOMS).flatMap(([room, { has }]) => has
    .filter(path => path === file || (path.endsWith('/') && file.startsWith(path)))
    .map(path => ({ room, length: path.length })))
  const [nearest] = named.sort((a, b) => b.length - a.length)
  return nearest?.room ?? (file.includes('/') ? `no room for ${file}` : 'ground')
}

const files = [...LIBRARY.keys()]

/** The files that each file imports, types and dynamic imports included. */
const imports = new Map(Array.from(LIBRARY, ([file, source]) => {
  const specifiers = source.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)
  return [file, Array.from(specifiers, ([, specifier = '']) =>
    join(file, '..', specifier).replace(/\.js$/, '.ts'))]
}))

function textOf (file: string): string {
  return LIBRARY.get(file) ?? ''
}

t.test('every import points down', async t => {
  const upward = [...imports].flatMap(([file, imported]) => imported
    .filter(other => roomOf(other) !== roomOf(file) && ROOMS[roomOf(file)]?.asks.includes(roomOf(other)) !== true)
    .map(other => `${file} imports ${other}`))

  t.strictSame(upward, [])
})

t.test('no engine of the store imports another one, and what is beside them opens them when they are used', async t => {
  const engineOf = (file: string): string | undefined => ENGINES.find(engine => file.startsWith(engine))
  const crossing = [...imports].flatMap(([file, imported]) => imported
    .filter(other => engineOf(other) !== undefined && engineOf(file) !== undefined && engineOf(other) !== engineOf(file))
    .map(other => `${file} imports ${other}`))

  t.strictSame(crossing, [])
  t.strictSame(imports.get('engines/sql-target.ts')?.filter(other => engineOf(other) !== undefined), [])
})

t.test('what runs comes from drizzle-orm by way of lib/drizzle, which the build bundles, and of the exported tables', async t => {
  const importing = files.filter(file => /^(?:import|export) (?!type\b)[^']* from 'drizzle-orm/m.test(textOf(file)))

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

t.test('the account page asks a list for its sections, and a deletion alone for the field of the password', async t => {
  const features = imports.get('features/account/page.ts')?.filter(other => other.startsWith('features/'))

  t.strictSame(features, ['features/pages/parts.ts', 'features/password/page.ts'])
})

t.test('accounts are reached through Accounts alone', async t => {
  const members = 'findUser|links|factors|findCredential|status|users|insert|change'
  const calling = files.filter(file => !/^(?:accounts|engines|testing\/store-contract)\//.test(file) &&
    new RegExp(`\\bstore\\.(?:${members})\\b`).test(textOf(file)))

  t.strictSame(calling, [])
})

t.test('every import leads to a file of lib/, and every room has a rule', async t => {
  const missing = [...imports].flatMap(([file, imported]) => imported
    .filter(other => !imports.has(other))
    .map(other => `${file} imports ${other}`))

  t.strictSame(missing, [])
  t.strictSame(files.map(roomOf).filter(room => !(room in ROOMS)), [])
  const named = Object.values(ROOMS).flatMap(({ has }) => has)
  t.strictSame(named.filter(path => !files.some(file => file.startsWith(path))), [], 'every room has the files it names')
})
