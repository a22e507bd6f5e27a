/**
 * Writes the OpenAPI document of all routes at the default prefix, from which clients are generated: `node docs/openapi.mjs
 * dist/openapi.json`, after the build. An application has the routes that its options ask for; what an option changes about a
 * route is one with what it is without.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import fastifySwagger from '@fastify/swagger'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, OidcProvider, SqlAuthStore, openapiComponents } from 'fastify-svc-auth'
import { ApiKeys } from 'fastify-svc-auth/api-keys'
import { Connections } from 'fastify-svc-auth/connections'
import { OAuthServer } from 'fastify-svc-auth/oauth-server'
import { Pages } from 'fastify-svc-auth/pages'
import { Passkeys } from 'fastify-svc-auth/passkeys'
import { SecondFactor } from 'fastify-svc-auth/second-factor'

const { version, license } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const INFO = {
  title: 'fastify-svc-auth',
  version,
  license: { name: license, identifier: license },
  description: 'All routes of fastify-svc-auth. An application has those that its options ask for.'
}
const PROVIDER = {
  name: 'provider', in: 'path', required: true, schema: { type: 'string' }, description: 'The name of the provider'
}

async function documentOf (local) {
  const app = Fastify()
  await app.register(fastifySwagger, { openapi: { openapi: '3.1.0', info: INFO, components: openapiComponents } })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const discoveryUrl = 'https://id.example/.well-known/openid-configuration'
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    trustedOrigins: ['https://other.example'],
    providers: [new OidcProvider({ name: PROVIDER.name, discoveryUrl, clientId: 'client', clientSecret: 'secret', signOut: true, backChannelLogout: true })],
    local: new LocalIdentityProvider({ signingKey: privateKey.export({ format: 'jwk' }), sendMail () {}, signInByMail: true, ...local }),
    dataSecret: randomBytes(32).toString('hex'),
    session: { secret: randomBytes(32).toString('hex'), remember: { days: 30 } },
    pages: new Pages({ name: 'Application' }),
    secondFactor: new SecondFactor({ issuer: 'Application' }),
    passkeys: new Passkeys({ name: 'Application', relatedOrigins: ['https://other.example'], createOnSignIn: true }),
    store: new SqlAuthStore(':memory:'),
    apiKeys: new ApiKeys({ prefix: 'app', scopes: { read: 'Read', introspect: 'Check tokens' }, selfService: true }),
    connections: new Connections(),
    oauthServer: new OAuthServer({
      resources: { 'https://app.example/api': { scopes: { read: 'Read' } } }, registration: true, device: { clients: ['cli'] }
    })
  })
  await app.ready()
  const document = JSON.parse(JSON.stringify(app.swagger()), anyMember)
  await app.close()
  return document
}

/** The types of generated clients would give a schema of further members to all members. */
function anyMember (name, value) {
  return name === 'additionalProperties' && typeof value === 'object' ? true : value
}

/** The union of two documents: a member is required if both require it, and what is said twice is said as the first says it. */
function merged (one, other, name) {
  if (one === undefined || other === undefined || typeof one !== 'object') return one ?? other
  if (name === 'required') return one.filter(member => other.includes(member))
  if (Array.isArray(one)) return one
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries(Array.from(names, name => [name, merged(one[name], other[name], name)]))
}

/** Routes of a provider have its name as a parameter of their path. */
function withParameter ([path, operations]) {
  if (!path.startsWith(`/auth/${PROVIDER.name}/`)) return [path, operations]
  const ofProvider = Object.entries(operations)
    .map(([method, { parameters = [], ...operation }]) => [method, { ...operation, parameters: [PROVIDER, ...parameters] }])
  return [path.replace(PROVIDER.name, '{provider}'), Object.fromEntries(ofProvider)]
}

export async function openapiDocument () {
  const registrations = [{}, { verify: 'required' }, { passkey: true, roles: ['member'] }]
  const documents = await Promise.all(registrations.map(registration => documentOf({ registration })))
  const { paths, ...document } = documents.reduce((one, other) => merged(one, other))
  return { ...document, paths: Object.fromEntries(Object.entries(paths).map(withParameter)) }
}

if (process.argv[1] === import.meta.filename) writeFileSync(process.argv[2], JSON.stringify(await openapiDocument()))
