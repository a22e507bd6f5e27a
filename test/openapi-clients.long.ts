/** Clients that are generated from the document that the package ships. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@hey-api/openapi-ts'
import { Ajv2020 } from 'ajv/dist/2020.js'
import openapiTypes, { astToString } from 'openapi-typescript'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { type LocalIdentityProviderOptions, OidcProvider, SqlAuthStore } from '../lib/index.js'
import { ApiKeys } from '../lib/api-keys.js'
import { Connections } from '../lib/connections.js'
import { OAuthServer } from '../lib/oauth-server.js'
import { Pages } from '../lib/pages.js'
import { Passkeys } from '../lib/passkeys.js'
import { SecondFactor } from '../lib/second-factor.js'
import { mailbox } from '../lib/testing.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider, startApp } from './helpers/app.js'
import { compilerOptions } from './helpers/compiler-options.js'
import { freePort } from './helpers/loopback.js'
import { ecKey } from './helpers/signing-key.js'

const { openapiDocument } = await import(new URL('../docs/openapi.mjs', import.meta.url).href)
const DOCUMENT = await openapiDocument()
const OPERATIONS = Object.entries<Record<string, Operation>>(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })))

interface Operation {
  responses: Record<string, { content?: Record<string, { schema: object }> }>
}

/** What `openapi-client/client.ts` exports, which compiles with the generated types alone. */
type Client = Record<'callEach' | 'registerFirst', (baseUrl: string, called: Called[]) => Promise<void>>
type Called = Record<'path' | 'method' | 'type' | 'body', string> & Record<'status', number>

const IN_BROWSERS = { lib: ['lib.es2024.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'] }

/** The mistakes that the compiler finds in a file and in what it imports. */
function mistakesIn (file: string, options: ts.CompilerOptions = compilerOptions()): string[] {
  const program = ts.createProgram([file], { ...options, ...IN_BROWSERS })
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

/** An application that has every route, but for those of other registrations; its URL. */
async function startOn (t: Test, { registration }: Pick<LocalIdentityProviderOptions, 'registration'>): Promise<string> {
  const port = await freePort()
  const baseUrl = `http://localhost:${port}`
  const app = await startApp(t, {
    baseUrl,
    trustedOrigins: ['https://other.example'],
    providers: [new OidcProvider({
      name: 'own',
      discoveryUrl: 'https://localhost:1/.well-known/openid-configuration',
      clientId: 'a',
      clientSecret: 'b',
      signOut: true,
      backChannelLogout: true
    })],
    local: localProvider({ secret: undefined, signingKey: ecKey(), sendMail: mailbox().sendMail, signInByMail: true, registration }),
    dataSecret: LOCAL_SECRET,
    session: { secret: SESSION_SECRET, remember: { days: 30 } },
    store: new SqlAuthStore(':memory:'),
    pages: new Pages({ name: 'Shop' }),
    apiKeys: new ApiKeys({ prefix: 'shop', scopes: { introspect: 'Check tokens' }, selfService: true }),
    connections: new Connections(),
    oauthServer: new OAuthServer({
      resources: { [`${baseUrl}/mcp`]: { scopes: { read: 'Read your notes' } } },
      clients: [{ client_id: 'cli', client_name: 'Command line', redirect_uris: [] }],
      registration: true,
      device: { clients: ['cli'] }
    }),
    secondFactor: new SecondFactor({ issuer: 'Shop' }),
    passkeys: new Passkeys({ name: 'Shop', relatedOrigins: ['https://other.example'], createOnSignIn: true })
  })
  await app.listen({ host: 'localhost', port })
  return baseUrl
}

t.test('a client of openapi-fetch compiles against the document, and gets what it says from every operation', async t => {
  const folder = t.testdir()
  const client = join(folder, 'client.ts')
  copyFileSync(new URL('openapi-client/client.ts', import.meta.url), client)
  writeFileSync(join(folder, 'auth.d.ts'), astToString(await openapiTypes(DOCUMENT)))
  t.strictSame(mistakesIn(client), [])

  const { callEach, registerFirst }: Client = await import(client)
  const called: Called[] = []
  await callEach(await startOn(t, {}), called)
  await registerFirst(await startOn(t, { registration: { verify: 'first' } }), called)

  const names = called.map(({ method, path }) => `${method} ${path}`)
  t.strictSame(OPERATIONS.map(({ name }) => name).filter(name => !names.includes(name)), [], 'each operation was called')
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(DOCUMENT, 'document')
  for (const [index, { status, type, body }] of called.entries()) {
    const name = String(names[index])
    const { responses = {} } = OPERATIONS.find(operation => operation.name === name)?.operation ?? {}
    const { content } = responses[status] ?? {}
    t.ok(status in responses, `${name} says that it may answer ${status}: ${body.slice(0, 200)}`)
    // A browser is answered with a page where a script gets JSON.
    const schema = type === 'application/json' ? content?.[type]?.schema : undefined
    if (schema === undefined) continue
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')))
    t.ok(validate(JSON.parse(body)), `${name} answers ${status} as it says: ${body.slice(0, 200)}`)
  }
})

t.test('a client that @hey-api/openapi-ts generates compiles', async t => {
  const folder = t.testdir()
  await createClient({ input: DOCUMENT, output: folder, logs: { level: 'silent' } })

  const { ESNext: module } = ts.ModuleKind
  const { Bundler: moduleResolution } = ts.ModuleResolutionKind
  t.strictSame(mistakesIn(join(folder, 'index.ts'), { strict: true, skipLibCheck: true, noEmit: true, module, moduleResolution }), [])
})
