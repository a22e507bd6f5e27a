import Fastify from 'fastify'
import t from 'tap'
import authPlugin from '../../lib/index.js'
import { SESSION_SECRET, localProvider, startApp } from '../helpers/app.js'

const URL = '/.well-known/change-password'
const PAGE = '/account/password?from=manager#form'

t.test('a password manager is redirected to the page of the application, without a session', async t => {
  for (const options of [{}, { local: localProvider() }, { prefix: '/sign/in' }, { baseUrl: 'https://app.example' }]) {
    const app = await startApp(t, { ...options, changePasswordPage: PAGE })

    for (const accept of ['text/html', 'application/json', '*/*']) {
      const { statusCode, headers, body } = await app.inject({ url: `${URL}?next=https://evil.example`, headers: { accept } })
      t.match([statusCode, headers.location, body], [302, PAGE, ''])
      t.equal(headers['set-cookie'], undefined)
      t.equal(headers['cache-control'], 'no-store')
    }
    t.equal((await app.inject(`/auth${URL}`)).statusCode, 404)
  }
})

t.test('the page is under the path of baseUrl, the route is not', async t => {
  for (const changePasswordPage of ['/password', '/shop/password']) {
    const app = await startApp(t, { baseUrl: 'https://app.example/shop', changePasswordPage })
    t.equal((await app.inject(URL)).headers.location, '/shop/password')
  }
})

t.test('without the option there is no route, and the application can have its own', async t => {
  const app = await startApp(t, {}, {}, app => { app.get(URL, async () => 'its own') })

  t.equal((await app.inject(URL)).body, 'its own')
  t.equal((await (await startApp(t)).inject(URL)).statusCode, 404)
})

t.test('in a context with a prefix, where the route cannot be at the root, the option is refused', async t => {
  const register = (prefix: string) => {
    const app = Fastify()
    t.teardown(() => app.close())
    return app.register(async scope => {
      await scope.register(authPlugin, { session: { secret: SESSION_SECRET }, changePasswordPage: PAGE })
    }, { prefix }).ready()
  }

  await t.rejects(async () => register('/api'), { name: 'OptionsError', message: /^changePasswordPage needs the route .* prefix \/api of the context/ })
  await t.resolves(async () => register('/'))
})

t.test('what the application compiles its own schemas with is not asked', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  const refuse = () => { throw new Error('this schema is not of the application') }
  app.setValidatorCompiler(refuse).setSerializerCompiler(refuse)

  await app.register(authPlugin, { session: { secret: SESSION_SECRET }, changePasswordPage: PAGE })

  t.equal((await app.inject(URL)).statusCode, 302)
})
