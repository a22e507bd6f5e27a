import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { SecondFactor } from 'fastify-svc-auth/second-factor'
import { totp } from 'fastify-svc-auth/testing'

const app = Fastify()
const local = new LocalIdentityProvider({ secret: 'a secret of more than 32 characters' })
await app.register(authPlugin, {
  local,
  store: new SqlAuthStore(process.env.LOCAL_AUTH_DB ?? ':memory:'),
  session: { secret: 'another one of more than 32 characters' },
  dataSecret: 'the data secret of more than 32 characters',
  secondFactor: new SecondFactor({ issuer: 'Shop' })
})
app.get('/me', { preHandler: app.auth.requireUser }, async request => ({ email: request.principal?.claims.email }))

// @ts-expect-error what the plugin uses for its own routes, it does not add to the application
if (app.createRateLimit !== undefined) throw new Error('app.createRateLimit is there')

const payload = { email: 'ada@example.com', password: 'correct horse' }
const registered = await app.inject({ method: 'POST', url: '/auth/local/register', payload })
const [cookie] = registered.cookies
const me = await app.inject({ url: '/me', cookies: { [cookie?.name ?? '']: cookie?.value ?? '' } })
if (me.json().email !== payload.email) throw new Error(`/me answered ${me.body}`)
console.log('ES module:', me.body)

const cookies = { [cookie?.name ?? '']: cookie?.value ?? '' }
const post = async (url: string, payload: object) => app.inject({ method: 'POST', url, payload, cookies })
const enrolment = await post('/auth/local/totp/enroll', {})
const confirmed = await post('/auth/local/totp/confirm', { code: totp(enrolment.json().uri) })
if (confirmed.statusCode !== 200) throw new Error(confirmed.body)
console.log('second factor:', confirmed.json().recoveryCodes.length, 'recovery codes')
await app.close()
