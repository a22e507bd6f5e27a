import t from 'tap'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { ADA, ExampleProject, FORBIDDEN } from './example-project.js'

const url = await emptyDatabase(t)
const settings = { DATABASE_URL: url, LOCAL_AUTH_DB: `${url}?search_path=svc_auth` }

const project = await ExampleProject.install(t, 'kysely')
await project.run('npm', ['run', 'migrate'], settings)
const visitor = await project.start('node', ['app.ts'], settings)

/** The schemas of the database in which there are tables, with the number of those of the plugin. */
async function schemas (): Promise<Array<Record<string, unknown>>> {
  return query(url, `select schemaname, count(*) filter (where tablename like 'svc_auth_%')::int > 0 as of_plugin from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') group by schemaname order by schemaname`)
}

t.test('the example compiles', async t => {
  await t.resolves(project.run('tsc'))
})

t.test('guards refuse visitors: with the error of the plugin, or to the login page', async t => {
  t.match(await visitor.get('/orders'), { status: 401, body: { statusCode: 401, code: 'unauthenticated', error: 'Unauthorized' } })
  t.match(await visitor.get('/orders', 'text/html'), { status: 302, location: '/auth/pages/sign-in?next=%2Forders' })
})

t.test('a row of the application refers to the user who signed in by password', async t => {
  const ada = visitor.another()
  const { body: { userId } } = await visitor.another().post('/auth/local/register', ADA)

  t.match(await ada.submit('/auth/local/login', { ...ADA, next: '/orders' }), { status: 303 })

  t.match(await ada.post('/orders', { item: 'a book' }), { status: 200, body: [{ item: 'a book', user_id: userId }] })
})

t.test('a query joins tables of both schemas, for users with the claims', async t => {
  const ada = visitor.another()
  await ada.post('/auth/local/login', ADA)
  const refused = await ada.get('/orders')
  await project.run('fastify-svc-auth', ['grant', ADA.email, '--claim', 'role=admin'], settings)
  await ada.post('/auth/local/login', ADA)

  t.equal(refused.status, 403)
  t.strictSame(refused.body, FORBIDDEN)
  t.strictSame((await ada.get('/orders')).body, [{ item: 'a book', email: ADA.email }])
})

t.test('each tool has a schema, and neither changes that of the other', async t => {
  t.strictSame(await schemas(), [{ schemaname: 'app', of_plugin: false }, { schemaname: 'svc_auth', of_plugin: true }])

  await project.run('npm', ['run', 'migrate'], settings)
  t.strictSame(JSON.parse(await project.run('fastify-svc-auth', ['migrate', '--check'], settings)), { migrated: [] })
  t.equal((await query(url, 'select from app.orders')).length, 1)
})

t.test('the rows of a deleted user are deleted with the user', async t => {
  await project.run('fastify-svc-auth', ['delete', ADA.email, '--yes'], settings)

  t.strictSame(await query(url, 'select item from app.orders'), [])
})
