import { readFileSync, writeFileSync } from 'node:fs'
import fastifySwagger from '@fastify/swagger'
import Fastify from 'fastify'
import t from 'tap'
import authPlugin, {
  type AuthPluginOptions, type LocalIdentityProviderOptions, OidcProvider, openapiComponents
} from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from '../helpers/app.js'
import { ecKey } from '../helpers/signing-key.js'

/**
 * The OpenAPI document, an operation a line: clients are generated from it, so that a change of a
 * route which is not meant shows here. `UPDATE=true` writes the file.
 */
const FILE = new URL('openapi.jsonl', import.meta.url)

const APPLICATIONS: Array<[local: LocalIdentityProviderOptions, options?: AuthPluginOptions]> = [
  [{ secret: undefined, signingKey: ecKey(), sendMail () {} }],
  [{ sendMail () {}, registration: { verify: 'required' } }],
  [{ sendMail () {}, registration: { verify: 'first', roles: ['member'] } }],
  [{}, { secondFactor: new SecondFactor({ issuer: 'Shop' }) }]
]

/** The operations of an application, without those that the one before has alike. */
async function operations (
  [local, options]: typeof APPLICATIONS[number],
  seen: Set<string>
): Promise<string[]> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifySwagger, { openapi: { openapi: '3.1.0', components: openapiComponents } })
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    providers: [new OidcProvider({
      name: 'own', discoveryUrl: 'https://id.example/.well-known/openid-configuration', clientId: 'a', clientSecret: 'b', signOut: true, backChannelLogout: true
    })],
    local: localProvider(local),
    dataSecret: LOCAL_SECRET,
    changePasswordPage: '/account/password',
    session: { secret: SESSION_SECRET, remember: { days: 30 } },
    ...options
  })
  await app.ready()
  const { paths = {} } = app.swagger()
  const lines = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(Object(methods)).map(([method, operation]) => JSON.stringify([`${method} ${path}`, ordered(operation)])))
  const added = lines.filter(line => !seen.has(line))
  for (const line of lines) seen.add(line)
  return added
}

/** Sorts what has no order: members, and the codes that one status may have. */
function ordered (value: unknown): unknown {
  if (typeof value === 'string') return value.split('\n\n').sort().join('\n\n')
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => one < other ? -1 : 1)
    .map(([name, member]) => [name, ordered(member)]))
}

t.test('the OpenAPI document is the one that clients know', async t => {
  const seen = new Set<string>()
  const lines: string[] = []
  for (const application of APPLICATIONS) lines.push(...await operations(application, seen))
  if (process.env.UPDATE === 'true') writeFileSync(FILE, `${lines.join('\n')}\n`)

  const known = readFileSync(FILE, 'utf8').trimEnd().split('\n').map(line => JSON.parse(line))
  t.strictSame(lines.map(line => JSON.parse(line)), known)
})
