import { register } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'

/** The packages that a process has loaded so far, and whether it has the pages and the second factors. */
export interface Loaded {
  /** The number of modules that are loaded behind ready. */
  modulesBehind: number
  whenReady: string[]
  /** When nothing more is loaded, before the first request. */
  behindReady: string[]
  /** After a sign-in was started at a provider. */
  afterLogin: string[]
  /** After a user registered with a password. */
  afterRegistration: string[]
}

// As a program: an application with all that the plugin has, and a store on the target that is its first argument. Static imports would be
// loaded before the hooks are there.
const OF_FACTORS = /\/lib\/(?:core\/codes|features\/(?:factor-acts|passkeys\/(?!method)|second-factor\/(?!methods)))/
const { port1: loadings, port2: port } = new MessageChannel()
register('./loading-hooks.ts', import.meta.url, { data: port, transferList: [port] })
const packages = new Set<string>()
let modules = 0

const { default: Fastify } = await import('fastify')
const { default: authPlugin, FacebookProvider, GitHubProvider, GoogleProvider, MicrosoftProvider, OidcProvider, SqlAuthStore } = await import('../lib/index.js')
const { hashing } = await import('../lib/features/password/hashing.js')
const { SESSION_SECRET, localProvider } = await import('./helpers/app.js')
const { Browser } = await import('./helpers/browser.js')

const client = { clientId: 'the-id', clientSecret: 'the-secret' }
const store = new SqlAuthStore(process.argv[2])
const app = Fastify()
await app.register(authPlugin, {
  baseUrl: 'https://app.example',
  providers: [
    new GoogleProvider(client),
    new GitHubProvider(client),
    new MicrosoftProvider(client),
    new FacebookProvider(client),
    new OidcProvider({ name: 'keycloak', discoveryUrl: 'https://id.example/realms/main/.well-known/openid-configuration', ...client })
  ],
  local: localProvider(),
  store,
  session: { secret: SESSION_SECRET }
})
await app.ready()
const browser = new Browser(app)

const whenReady = loaded()
const modulesBefore = modules
while (!['@node-rs/argon2', 'better-sqlite3'].every(name => loaded().includes(name))) await setImmediate()
await hashing.preload()
await store.report(app.log)
const behindReady = loaded()
await answered(201, browser.post('/auth/local/register', { email: 'ada@example.com', password: 'a good password' }))
const afterRegistration = loaded()
const modulesBehind = modules - modulesBefore
await answered(302, browser.get('/auth/github/login'))
const afterLogin = loaded()
await app.close()
process.send?.({ modulesBehind, whenReady, behindReady, afterLogin, afterRegistration } satisfies Loaded)

function loaded (): string[] {
  for (let told = receiveMessageOnPort(loadings); told !== undefined; told = receiveMessageOnPort(loadings)) {
    modules++
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(told.message) ?? []
    if (name !== undefined) packages.add(name)
    if (/\/lib\/(?:core\/pages|features\/(?:page-acts|pages|sign-in-pages))/.test(told.message)) packages.add('the pages')
    if (OF_FACTORS.test(told.message)) packages.add('second factors')
  }
  return [...packages]
}

async function answered (expected: number, response: ReturnType<InstanceType<typeof Browser>['get']>): Promise<void> {
  const { statusCode, body } = await response
  if (statusCode !== expected) throw new Error(`expected ${expected}, got ${statusCode}: ${body}`)
}
