import { join } from 'node:path'
import t from 'tap'
import { ADA, ExampleProject, FORBIDDEN } from './example-project.js'

const project = await ExampleProject.install(t, 'autoload')
const LOCAL_AUTH_DB = join(t.testdir(), 'users.db')
const visitor = await project.start('fastify', ['start', 'app.ts'], { LOCAL_AUTH_DB })

t.test('the example compiles with the decorators of the plugin', async t => {
  await t.resolves(project.run('tsc'))
})

t.test('hooks and routes of other files guard by app.auth', async t => {
  t.match(await visitor.get('/account'), { status: 401, body: { statusCode: 401, code: 'unauthenticated', error: 'Unauthorized' } })
  t.match(await visitor.get('/account', 'text/html'), { status: 302, location: '/auth/pages/sign-in?next=%2Faccount' })
  t.match(await visitor.get('/admin/users'), { status: 401 })
})

t.test('a guarded route knows the user who signed in by password', async t => {
  const ada = visitor.another()
  const { body: { userId } } = await visitor.another().post('/auth/local/register', ADA)

  t.match(await ada.submit('/auth/local/login', { ...ADA, next: '/account' }), { status: 303, location: '/account' })

  t.match(await ada.get('/account'), { status: 200, body: { userId, email: ADA.email } })
})

t.test('the guard that a plugin of the application adds refuses with the error of this one until the user has the claims', async t => {
  const ada = visitor.another()
  await ada.post('/auth/local/login', ADA)
  const refused = await ada.get('/admin/users')
  await project.run('fastify-svc-auth', ['grant', ADA.email, '--claim', 'role=admin'], { LOCAL_AUTH_DB })
  await ada.post('/auth/local/login', ADA)

  t.equal(refused.status, 403)
  t.strictSame(refused.body, FORBIDDEN)
  t.match(await ada.get('/admin/users'), { status: 200, body: { users: [{ email: ADA.email }] } })
})

t.test('a prefix of fastify-cli is that of all routes, and of the redirects', async t => {
  const prefixed = await project.start('fastify', ['start', '--prefix', '/api', 'app.ts'], { LOCAL_AUTH_DB }, '/api/auth/session')

  t.match(await prefixed.get('/api/account', 'text/html'), { status: 302, location: '/api/auth/pages/sign-in?next=%2Fapi%2Faccount' })
  t.match(await prefixed.post('/api/auth/local/login', ADA), { status: 200 })
  t.match(await prefixed.get('/api/account'), { status: 200 })
})
