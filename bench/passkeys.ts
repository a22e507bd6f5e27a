import { execFileSync } from 'node:child_process'
import Fastify, { type LightMyRequestResponse } from 'fastify'
import authPlugin, { LocalIdentityProvider, MemoryAuthStore } from '../dist/index.js'
import { Passkeys } from '../dist/passkeys.js'
import { SoftwareAuthenticator } from '../test/fakes/authenticator.js'
import { machine } from './parts/machine.js'
import { median } from './parts/measure.js'
import { benchOptions } from './parts/options.js'
import { figure, table } from './parts/table.js'

/** What a sign-in by passkey costs the server, beside one by password; and what the library of passkeys costs to load. */

const { isShort } = benchOptions()
const ORIGIN = 'https://app.example'
const ADA = { email: 'ada@example.com', password: 'correct horse battery staple' }

/** A program that loads the library: prints the milliseconds, and the MiB that it takes. */
const LOADING = `
  const before = process.memoryUsage().rss
  const start = performance.now()
  await import('@simplewebauthn/server')
  console.log(JSON.stringify([performance.now() - start, (process.memoryUsage().rss - before) / 2 ** 20]))
`

console.log(`${machine('@node-rs/argon2', '@simplewebauthn/server')}\n`)

const loads = Array.from({ length: isShort ? 1 : 11 }, (): [number, number] =>
  JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', LOADING], { encoding: 'utf8' })))
console.log(table(['once, behind ready', ''], [
  ['the library of passkeys, ms', figure(median(loads.map(([ms]) => ms)))],
  ['the library of passkeys, MiB', figure(median(loads.map(([, mib]) => mib)))]
]) + '\n')

const app = Fastify()
await app.register(authPlugin, {
  baseUrl: ORIGIN,
  store: new MemoryAuthStore(),
  session: { secret: 'a secret for the bench of passkeys, 32+' },
  local: new LocalIdentityProvider({ secret: 'a secret for the bench of passkeys, 32+' }),
  passkeys: new Passkeys({ name: 'Bench' }),
  rateLimit: false
})

async function post (url: string, body: object, cookie = ''): Promise<LightMyRequestResponse> {
  const response = await app.inject({ method: 'POST', url, payload: body, headers: { accept: 'application/json', cookie } })
  if (response.statusCode >= 300) throw new Error(`${url} answered ${response.statusCode} ${response.body}`)
  return response
}

function cookieOf (response: LightMyRequestResponse): string {
  return response.cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
}

const authenticator = new SoftwareAuthenticator({ origin: ORIGIN })
const session = cookieOf(await post('/auth/local/register', ADA))
const creation = (await post('/auth/local/passkeys/options', { for: 'register' }, session)).json()
await post('/auth/local/passkeys/register', { response: authenticator.create(creation) }, session)

/** Milliseconds of CPU time that a step takes, without what the authenticator takes. */
async function costOf (step: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage()
  await step()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

async function byPasskey (): Promise<number> {
  let options: LightMyRequestResponse | undefined
  const first = await costOf(async () => { options = await post('/auth/local/passkeys/options', { for: 'login' }) })
  if (options === undefined) throw new Error('there are options')
  const response = authenticator.get(options.json())
  const cookie = cookieOf(options)
  return first + await costOf(() => post('/auth/local/passkeys/login', { response }, cookie))
}

const costs: Record<'passkey' | 'password', number[]> = { passkey: [], password: [] }
for (let round = 0; round < (isShort ? 3 : 200); round++) {
  costs.passkey.push(await byPasskey())
  costs.password.push(await costOf(() => post('/auth/local/login', ADA)))
}
console.log(table(['a sign-in', 'ms of CPU time'], [
  ['by passkey: options and login', figure(median(costs.passkey))],
  ['by password: login with its hash', figure(median(costs.password))]
]))
await app.close()
