import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import Fastify from 'fastify'
import t from 'tap'
import ts from 'typescript'
import { ERRORS } from '../lib/errors.js'
import authPlugin, { GitHubProvider, LocalIdentityProvider } from '../lib/index.js'
import { Pages } from '../lib/pages.js'
import { Passkeys } from '../lib/passkeys.js'
import { SecondFactor } from '../lib/second-factor.js'
import { DEFAULT_ARGON2_COST } from '../lib/features/password/hashing.js'
import { MIN_PASSWORD_LENGTH } from '../lib/features/password/rules.js'
import { resolveOptions } from '../lib/options.js'
import { checkedProviderOptions } from '../lib/providers/provider-options.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from './helpers/app.js'
import { compilerOptions } from './helpers/compiler-options.js'
import { LIBRARY } from './helpers/library.js'
import { Documentation, Markdown } from './helpers/markdown.js'
import { ecKey } from './helpers/signing-key.js'

const ROOT = join(import.meta.dirname, '..')
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const DOCS = await Documentation.read()
const README = DOCS.page('README.md')
const CLIENT = { clientId: 'an-id', clientSecret: 'a secret' }

/** The sources of the entry points, by what an application imports. */
const ENTRY_POINTS = Object.keys(PACKAGE.exports).filter(path => !path.endsWith('.json')).map(path => ({
  name: path.replace('.', 'fastify-svc-auth'),
  source: join(ROOT, 'lib', `${path === '.' ? 'index' : path}.ts`)
}))
const program = ts.createProgram(ENTRY_POINTS.map(({ source }) => source), compilerOptions())
const checker = program.getTypeChecker()

t.test('the options that the documentation has in tables are those of the types, and of these types', async t => {
  const common = DOCS.section('Options of every provider').table()
  const tables: Array<[type: string, rows: string[][]]> = [
    ['AuthPluginOptions', DOCS.section('Options of the plugin').table()],
    ['LocalIdentityProviderOptions', DOCS.section('Options of LocalIdentityProvider').table()],
    ['TokenVerifierOptions', DOCS.section('A service that only verifies tokens').table()],
    ['ProviderOptions', common],
    ['OidcProviderOptions', [...common, ...DOCS.section('Any OpenID Connect provider').table()]],
    ['OAuthServerOptions', DOCS.section('Options of OAuthServer').table()],
    ['SecondFactorOptions', DOCS.section('Options of SecondFactor').table()],
    ['OAuth2ProviderOptions', [...common, ...DOCS.section('Add a provider that speaks OAuth 2.0').table()]]
  ]
  for (const [type, rows] of tables) {
    // A later row is about the option of this class.
    const documented = new Map(rows.flatMap(([option = '', kinds = '']) => codeIn(option).map((name): [string, string] => [name, kinds])))

    const names = new Set([...documented.keys()].map(name => name.replace(/\..*/, '')))
    t.strictSame([...names].sort(), membersOf(type).sort(), type)
    for (const [name, kinds] of documented) {
      t.equal(
        kinds.split(' or ').map(kind => codeIn(kind)[0] ?? kind).sort().join(' or '),
        kindsOf(type, name),
      `${type}: ${name}`
      )
    }
  }
})

for (const { name, source } of ENTRY_POINTS) {
  t.test(`the names that the reference has for ${name} are its exports, each once`, async t => {
    const { text } = DOCS.section(`Exports of ${name}`)
    const documented = Array.from(text.matchAll(/^\| (`.*?) \|/gm), ([, names = '']) => codeIn(names)).flat()
    const file = program.getSourceFile(source)
    const module = file && checker.getSymbolAtLocation(file)
    const exported = module === undefined ? [] : checker.getExportsOfModule(module).map(symbol => symbol.name)

    t.ok(exported.length > 0)
    t.strictSame(documented.sort(), exported.sort())
  })
}

t.test('the options that README has are those of the plugin', async t => {
  const documented = README.section('Options').table().flatMap(([options = '']) => codeIn(options))
  t.strictSame(documented.sort(), membersOf('AuthPluginOptions').sort())
})

t.test('the options that the documentation has beside the name of a class are those of the class', async t => {
  const providers = membersOf('ProviderOptions')
  for (const [name, heading] of [
    ['Google', 'Google'],
    ['GitHub', 'GitHub'],
    ['Microsoft', 'Microsoft'],
    ['Facebook', 'Facebook'],
    ['Auth0', 'Auth0']
  ] as const) {
    const { text } = DOCS.section(heading)
    const own = membersOf(`${name}ProviderOptions`).filter(option => !providers.includes(option))
    const [, signature = ''] = new RegExp(`\`new ${name}Provider\\(\\{ ([^}]*) \\}\\)\``).exec(text) ?? []
    t.strictSame(signature.split(', ').sort(), ['clientId', 'clientSecret', ...own].sort(), name)
  }
  t.match(DOCS.section('Choose a store').text, `\`new SqlAuthStore(target, { ${membersOf('SqlAuthStoreOptions').join(', ')} })\``)
})

t.test('the options of signedIn and the faults of startProvider that the documentation has are those of the types', async t => {
  const firstCells = (heading: string) => DOCS.section(heading).table().flatMap(([cell = '']) => codeIn(cell)).sort()
  const faults = typeOf('ProviderFault')

  t.strictSame(firstCells('Sign a user in'), membersOf('SignedInUser').sort())
  t.strictSame(
    firstCells('Sign a user in through a provider'),
    faults.isUnion() ? faults.types.flatMap(type => type.isStringLiteral() ? [type.value] : []).sort() : []
  )
})

t.test('the defaults that the documentation has in tables are those of the code', async t => {
  const {
    site: { baseUrl, trustedOrigins },
    local,
    onCreateUser,
    onSignIn,
    onLink,
    onDelete,
    onGuest,
    redirects: {
      application: {
        login: loginPage,
        register: registerPage,
        forgotPassword: forgotPasswordPage,
        account: accountPage,
        reauthenticate: reauthenticatePage,
        secondFactor: secondFactorPage
      }
    },
    parts: { secondFactor, passkeys, oauthServer, apiKeys, connections, impersonation, guests, knownBrowsers },
    changePasswordPage,
    layout,
    providers,
    store,
    prefix,
    linking,
    rateLimit
  } = resolveOptions({ session: { secret: SESSION_SECRET } })
  const { issuer, ttl, registration, mail, signInByMail } = new LocalIdentityProvider({ secret: LOCAL_SECRET, sendMail () {} })
  const { choices: mails, pages } = mail ?? {}
  const { authorizationParams, timeout, fetch } = checkedProviderOptions({ name: 'any', ...CLIENT }, [], {})
  const oidc = (name: string) => initializerIn('lib/providers/oidc.ts', name)
  const oauth2 = (name: string) => initializerIn('lib/providers/oauth2.ts', name)
  const nothing = ''

  const tables: Array<[rows: string[][], defaults: Record<string, unknown>]> = [
    [DOCS.section('Options of the plugin').table(), {
      baseUrl: baseUrl ?? nothing,
      providers,
      local: local ?? nothing,
      store: store.constructor.name,
      session: nothing,
      dataSecret: 'SVC_AUTH_DATA_SECRET',
      prefix,
      loginPage: loginPage ?? nothing,
      registerPage: registerPage ?? nothing,
      forgotPasswordPage: forgotPasswordPage ?? nothing,
      accountPage: accountPage ?? nothing,
      reauthenticatePage: reauthenticatePage ?? nothing,
      secondFactor: secondFactor ?? nothing,
      passkeys: passkeys ?? nothing,
      oauthServer: oauthServer ?? nothing,
      apiKeys: apiKeys ?? nothing,
      connections: connections ?? nothing,
      impersonation: impersonation ?? nothing,
      guests: guests ?? nothing,
      onGuest: onGuest ?? nothing,
      secondFactorPage: secondFactorPage ?? nothing,
      notices: { newBrowser: knownBrowsers !== null },
      changePasswordPage: changePasswordPage ?? nothing,
      pages: layout ?? nothing,
      linking,
      onCreateUser: onCreateUser ?? nothing,
      onSignIn: onSignIn ?? nothing,
      onLink: onLink ?? nothing,
      onDelete: onDelete ?? nothing,
      rateLimit,
      trustedOrigins: [...trustedOrigins]
    }],
    [
      DOCS.section('Options of LocalIdentityProvider').table(),
      {
        secret: 'LOCAL_IDP_SECRET',
        signingKey: nothing,
        issuer,
        ttl,
        argon2: DEFAULT_ARGON2_COST,
        password: {},
        'password.check': 'common()',
        'password.minLength': MIN_PASSWORD_LENGTH,
        signInByMail: signInByMail ?? false,
        registration,
        sendMail: nothing,
        mails,
        pages,
        accountRoutes: 'all on'
      }
    ],
    [
      DOCS.section('Options of every provider').table(),
      {
        clientId: nothing,
        clientSecret: nothing,
        label: 'after the name',
        icon: nothing,
        scopes: 'see below',
        authorizationParams,
        timeout,
        fetch: fetch === globalThis.fetch ? 'the global one' : nothing
      }
    ],
    [
      DOCS.section('Any OpenID Connect provider').table(),
      {
        name: nothing,
        discoveryUrl: nothing,
        issuer: 'what precedes /.well-known',
        clientSecret: nothing,
        clientKey: nothing,
        assertionAudience: 'issuer',
        responseMode: nothing,
        clientAuthentication: nothing,
        userinfo: oidc('userinfo'),
        pushedAuthorizationRequests: oidc('pushedAuthorizationRequests'),
        signOut: oidc('signOut'),
        backChannelLogout: oidc('backChannelLogout'),
        acceptUntypedLogoutTokens: oidc('acceptUntypedLogoutTokens'),
        withoutPkce: oidc('withoutPkce'),
        allowInsecureRequests: oidc('allowInsecureRequests')
      }
    ],
    [
      DOCS.section('Add a provider that speaks OAuth 2.0').table(),
      {
        name: nothing,
        authorizationEndpoint: nothing,
        tokenEndpoint: nothing,
        clientAuthentication: oauth2('clientAuthentication'),
        withoutPkce: oauth2('withoutPkce'),
        issuer: 'origin of authorizationEndpoint',
        conform: nothing,
        allowInsecureRequests: oauth2('allowInsecureRequests')
      }
    ]
  ]
  for (const [rows, defaults] of tables) {
    const documented = Object.fromEntries(rows.flatMap(([option = '', , cell = '']) => codeIn(option).map(name => [name, valueOf(cell)])))
    t.strictSame(documented, JSON.parse(JSON.stringify(defaults)))
  }

  const limits = DOCS.section('Know what is counted').table().map(([name = '', , limit = '']) => [codeIn(name)[0], Number(limit)])
  t.strictSame({ timeWindow: 15 * 60_000, ...Object.fromEntries(limits) }, rateLimit)
})

t.test('the defaults in the doc comments of the limits are those of the code', async t => {
  const { rateLimit } = resolveOptions({ session: { secret: SESSION_SECRET } })
  const documented = typeOf('RateLimitOptions').getProperties().filter(({ name }) => name !== 'store').map(member => {
    const text = ts.displayPartsToString(member.getDocumentationComment(checker))
    return [member.name, Number(/default (\d+)/.exec(text)?.[1])]
  })

  t.strictSame(Object.fromEntries(documented), rateLimit)
})

t.test('the defaults that the documentation has in the text on a provider are those of the code', async t => {
  for (const [file, heading, option] of [['microsoft', 'Microsoft', 'tenant'], ['facebook', 'Facebook', 'graphVersion']] as const) {
    const value = initializerIn(`lib/providers/${file}.ts`, option)
    const text = DOCS.section(heading).text.replaceAll('\n', ' ')
    t.match(text, new RegExp(`\`${option}\` is [^.]*\`${value}\`[^.]*default`), `${option}: ${value}`)
  }
})

t.test('the routes of the documentation are those that are mounted', async t => {
  const mounted = new Set<string>()
  const withoutNext: string[] = []
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRoute', ({ method, url, schema }) => {
    // What is there only to answer another method than GET is documented nowhere, HEAD neither.
    const path = url.replace('/github/', '/{provider}/').replace(/(?<=\/pages\/)(?!name$|unlink$).+/, '{page}')
    for (const name of [method].flat()) if (schema?.hide !== true && name !== 'HEAD') mounted.add(`${name} ${path}`)
    const { properties = {} } = Object(schema?.body)
    if (method === 'POST' && schema?.hide !== true && !('next' in properties && 'error_next' in properties)) withoutNext.push(path)
  })
  await app.register(authPlugin, {
    session: { secret: SESSION_SECRET },
    dataSecret: LOCAL_SECRET,
    baseUrl: 'https://app.example',
    providers: [Object.assign(new GitHubProvider(CLIENT), {
      signOut: true, endSessionUrl: async () => null, backChannelLogout: true, verifyLogoutToken: async () => ({ jti: 'a' })
    })],
    local: localProvider({
      secret: undefined, signingKey: ecKey(), issuer: 'https://app.example', sendMail () {}, signInByMail: true, registration: { verify: 'first' }
    }),
    pages: new Pages({ name: 'Shop' }),
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    trustedOrigins: ['https://app.test'],
    impersonation: { allow: () => false },
    passkeys: new Passkeys({ name: 'Shop', relatedOrigins: ['https://app.test'] })
  })
  await app.ready()

  const documented = DOCS.section('Routes').table().map(([route = '']) => route.replaceAll('`', '').replace(/\?.*/, ''))

  t.strictSame(documented.sort(), [...mounted].sort())
  t.strictSame(DOCS.routesWithoutNext(), withoutNext)
})

t.test('the decorators of the documentation are those that there are', async t => {
  const documented = DOCS.section('Decorators').table().flatMap(([names = '']) => codeIn(names).map(
    name => name.replace(/^\./, 'app.auth.').replace(/\(.*/, '')
  ))
  const hidden = typeOf('Auth').getProperties().filter(member => member.getJsDocTags().some(({ name }) => name === 'hidden'))
    .map(({ name }) => name)
  const members = membersOf('Auth').filter(name => !name.startsWith('#') && !hidden.includes(name))
    .map(name => `app.auth.${name}`)
  const source = readFileSync(join(ROOT, 'lib/plugin.ts'), 'utf8')
  const [app = [], request = []] = ['decorate', 'decorateRequest'].map(call => Array.from(
    source.matchAll(new RegExp(`app\\.${call}\\('(\\w+)'`, 'g')),
    ([, name = '']) => name
  ))

  t.strictSame(
    documented.sort(),
    [
      ...members,
      ...app.filter(name => name !== 'auth').map(name => `app.${name}`),
      ...request.map(name => `request.${name}`)
    ].sort()
  )
})

t.test('the error codes of the documentation are those that there are, with their status', async t => {
  const documented = DOCS.section('Codes').table().map(([code = '', status = '']) => [codeIn(code)[0], Number(status)])

  t.strictSame(Object.fromEntries(documented), Object.fromEntries(Object.entries(ERRORS).map(([code, [status]]) => [code, status])))
  t.equal(documented.length, Object.keys(ERRORS).length, 'each code once')
})

t.test('the events of the documentation are those of the audit', async t => {
  const documented = DOCS.section('Know the events').table().flatMap(([events = '']) => codeIn(events))
  t.strictSame(documented.sort(), membersOf('AuditEvents').sort())
})

t.test('the settings of the documentation are those that the library reads', async t => {
  // Not PGHOST and the like, which are those of libpq.
  const NAME = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/
  const read = [...LIBRARY.values()].flatMap(source => Array.from(
    source.matchAll(/(?:\benv\.|\bsetting(?:Of|sIn)\('|\bsecretsOf\([^)]*, '|\brequired\(env, '|(?<=')(?=APPLE_))([A-Z0-9_]+)/g),
    ([, name = '']) => name
  )).filter(name => NAME.test(name))
  const inPairs = Array.from(
    readFileSync(join(ROOT, 'lib/providers/from-env.ts'), 'utf8').matchAll(/^ {2}([A-Z0-9]+): (.*)/gm),
    ([, name = '', make = '']) => [
      `${name}_CLIENT_ID`, `${name}_CLIENT_SECRET`, ...(make.includes('discovered(') ? [`${name}_ISSUER`] : [])
    ]
  ).flat()
  const providers = DOCS.section('Providers')
  const inBlocks = providers.blocks('sh').flatMap(block => Array.from(block.matchAll(/^([A-Z0-9_]+)=/gm), ([, name = '']) => name))
  const documented = [...DOCS.section('Settings').code(), ...providers.code(), ...inBlocks].filter(name => NAME.test(name))

  t.ok(inPairs.length > 0)
  t.strictSame([...new Set(documented)].sort(), [...new Set([...read, ...inPairs])].sort())
})

function codeIn (cell: string): string[] {
  return new Markdown(cell).code()
}

/** What a cell says: a value as code has it, else words. */
function valueOf (cell: string): unknown {
  const words = cell.replaceAll('`', '')
  try {
    return JSON.parse(JSON.stringify(runInNewContext(`(${words})`)))
  } catch {
    return words
  }
}

/** A type or class of this name, of the library. */
function typeOf (name: string): ts.Type {
  for (const file of program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(join(ROOT, 'lib')))) {
    const module = checker.getSymbolAtLocation(file)
    const symbol = module === undefined
      ? undefined
      : checker.getExportsOfModule(module).find(
        symbol => symbol.name === name && (symbol.flags & ts.SymbolFlags.Alias) === 0
      )
    if (symbol !== undefined) return checker.getDeclaredTypeOfSymbol(symbol)
  }
  throw new Error(`there is no type ${name}`)
}

function membersOf (type: string): string[] {
  const isProtected = (declaration: ts.Declaration): boolean =>
    (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Protected) !== 0
  return typeOf(type).getProperties()
    .filter(({ declarations = [] }) => !declarations.some(isProtected))
    .map(({ name }) => name)
}

/** The types of an option, or of a member of it, in the words of the documentation. */
function kindsOf (type: string, path: string): string {
  const partsOf = (type: ts.Type): ts.Type[] => type.isUnion() ? type.types : [type]
  const parts = path.split('.').reduce((types, name) => {
    const found = types.map(type => checker.getNonNullableType(type)).flatMap(type => type.getProperty(name) ?? [])
    if (found.length === 0) throw new Error(`there is no option ${path}`)
    return found.flatMap(property => partsOf(checker.getTypeOfSymbol(property)))
  }, partsOf(typeOf(type)))
  const kinds = new Set(parts.filter(part => (part.flags & ts.TypeFlags.Undefined) === 0).map(kindOf))
  return [...kinds].sort().join(' or ').replace('false or true', 'boolean').replace('false or object or true', 'boolean or object')
}

function kindOf (type: ts.Type): string {
  if ((type.flags & ts.TypeFlags.StringLike) !== 0) return 'string'
  if ((type.flags & ts.TypeFlags.NumberLike) !== 0) return 'number'
  if ((type.flags & ts.TypeFlags.BooleanLike) !== 0) return checker.typeToString(type)
  if (type.getCallSignatures().length > 0) return 'function'
  const element = checker.isArrayType(type) ? checker.getIndexTypeOfType(type, ts.IndexKind.Number) : undefined
  if (element !== undefined) return `${[...new Set((element.isUnion() ? element.types : [element]).map(kindOf))].join(' or ')}[]`
  return ['ExternalProvider', 'LocalIdentityProvider', 'AuthStore'].find(name => typeOf(name).symbol === type.symbol) ?? 'object'
}

/** The value that a file gives to an option that is not there. */
function initializerIn (path: string, name: string): unknown {
  const file = program.getSourceFile(join(ROOT, path))
  const find = (node: ts.Node): string | undefined => {
    if (ts.isBindingElement(node) && node.name.getText() === name && node.initializer !== undefined) return node.initializer.getText()
    // In a table of checks: optional(check, default).
    if (ts.isPropertyAssignment(node) && node.name.getText() === name && ts.isCallExpression(node.initializer)) return node.initializer.arguments[1]?.getText()
    return ts.forEachChild(node, find)
  }
  const initializer = file === undefined ? undefined : find(file)
  if (initializer === undefined) throw new Error(`${path} has no default for ${name}`)
  return runInNewContext(initializer)
}
