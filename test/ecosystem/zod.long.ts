import { join } from 'node:path'
import t from 'tap'
import { ADA, ExampleProject, FORBIDDEN } from './example-project.js'

const project = await ExampleProject.install(t, 'zod')
const LOCAL_AUTH_DB = join(t.testdir(), 'users.db')
const visitor = await project.start('node', ['app.ts'], { LOCAL_AUTH_DB })

t.test('the example compiles: the body is typed by its schema', async t => {
  await t.resolves(project.run('tsc'))
})

t.test('guards refuse visitors: with the error of the plugin, or to the login page', async t => {
  t.match(await visitor.get('/orders'), { status: 401, body: { statusCode: 401, code: 'unauthenticated', error: 'Unauthorized' } })
  t.match(await visitor.get('/orders', 'text/html'), { status: 302, location: '/auth/pages/sign-in?next=%2Forders' })
})

t.test('the schemas of the application are those of Zod, and the routes of the plugin keep theirs', async t => {
  const ada = visitor.another()
  const { body: { userId } } = await ada.post('/auth/local/register', ADA)

  t.match(await ada.post('/orders', { item: 7 }), { status: 400, body: { code: 'FST_ERR_VALIDATION', message: /expected string/ } })
  t.strictSame((await ada.post('/orders', { item: 'a book' })).body, [{ item: 'a book', quantity: 1, userId }])
  t.match(await ada.post('/auth/local/login', { email: 7, password: true }), { status: 400, body: { code: 'invalid_request' } })
  t.match(await ada.submit('/auth/local/login', { ...ADA, next: '/orders' }), { status: 303, location: '/orders' })
})

t.test('a refusal passes through the schema that the application has for it', async t => {
  const ada = visitor.another()
  await ada.post('/auth/local/login', ADA)
  const refused = await ada.get('/orders')
  await project.run('fastify-svc-auth', ['grant', ADA.email, '--claim', 'role=admin'], { LOCAL_AUTH_DB })
  await ada.post('/auth/local/login', ADA)

  t.equal(refused.status, 403)
  t.strictSame(refused.body, FORBIDDEN)
  t.match(await ada.get('/orders'), { status: 200, body: [{ item: 'a book' }] })
})

t.test('one document has the routes of both', async t => {
  const { body: { paths, components } } = await visitor.get('/openapi.json')

  t.match(paths['/orders'].post.requestBody.content['application/json'].schema, { properties: { item: { type: 'string', minLength: 1 } } })
  t.match(paths['/auth/local/login'].post.requestBody.content['application/x-www-form-urlencoded'].schema, { required: ['email', 'password'] })
  t.match(Object.keys(components.schemas), ['AuthError', 'Principal'])
})
