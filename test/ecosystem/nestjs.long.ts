import { join } from 'node:path'
import t from 'tap'
import { ADA, ExampleProject, FORBIDDEN } from './example-project.js'

const project = await ExampleProject.install(t, 'nestjs')
const LOCAL_AUTH_DB = join(t.testdir(), 'users.db')
await project.run('npm', ['run', 'build'])
const visitor = await project.start('node', ['dist/main.js'], { LOCAL_AUTH_DB })

t.test('a guard refuses visitors as the plugin does: with its error, or to the login page', async t => {
  t.match(await visitor.get('/account'), { status: 401, body: { statusCode: 401, code: 'unauthenticated', error: 'Unauthorized' } })
  t.match(await visitor.get('/account', 'text/html'), { status: 302, location: '/auth/pages/sign-in?next=%2Faccount' })
  t.equal((await visitor.get('/account', 'text/html')).text, '', 'the handler did not run')
})

t.test('a guarded handler gets the user who signed in by password', async t => {
  const ada = visitor.another()
  const { body: { userId } } = await visitor.another().post('/auth/local/register', ADA)

  t.match(await ada.submit('/auth/local/login', { ...ADA, next: '/account' }), { status: 303, location: '/account' })

  t.match(await ada.get('/account'), { status: 200, body: { userId, email: ADA.email } })
})

t.test('a guard of claims refuses with the error of the plugin until the user has them', async t => {
  const ada = visitor.another()
  await ada.post('/auth/local/login', ADA)
  const refused = await ada.get('/users')
  await project.run('fastify-svc-auth', ['grant', ADA.email, '--claim', 'role=admin'], { LOCAL_AUTH_DB })
  await ada.post('/auth/local/login', ADA)

  t.equal(refused.status, 403)
  t.strictSame(refused.body, FORBIDDEN)
  t.match(await ada.get('/users'), { status: 200, body: { users: [{ email: ADA.email }] } })
})

t.test('the parsers and the 404 of Nest leave the routes of the plugin alone', async t => {
  t.match(await visitor.get('/auth/unknown'), { status: 404, body: { code: 'not_found' } })
  t.match(await visitor.get('/unknown'), { status: 404, body: { message: 'Cannot GET /unknown' } })
  t.match(await visitor.submit('/auth/local/login', { email: ADA.email }), { status: 400 })
  t.match(await visitor.post('/auth/local/login', ['a list']), { status: 400, body: { code: 'invalid_request' } })
})
