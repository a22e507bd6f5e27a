/** Connection URLs as hosts hand them out, and what people make of them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { OptionsError, SqlAuthStore } from '../../lib/index.js'
import { sqlTarget } from '../../lib/engines/sql-target.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { type Certificate, privateAuthority } from '../helpers/certificate.js'
import { emptyDatabase, query } from '../helpers/postgres.js'
import { holds } from '../helpers/properties.js'
import { startProxy } from '../helpers/tcp-proxy.js'

/** Listens at a Unix socket in front of a server, and returns the folder of the socket. */
async function startSocket (t: Test, url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  // The path of a socket has at most a hundred characters.
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-socket-'))
  const listener = createServer(client => {
    const server = connect(Number(port), hostname).on('error', () => {})
    client.on('error', () => {}).on('close', () => { server.destroy() }).pipe(server).pipe(client)
  })
  await new Promise<void>(resolve => { listener.listen(join(folder, '.s.PGSQL.5433'), resolve) })
  t.teardown(() => {
    listener.close()
    rmSync(folder, { recursive: true })
  })
  return folder
}

/** A database with the schema `shop`, behind a network that speaks TLS, and the parts of its URL. */
async function hostedDatabase (t: Test, certificate: Certificate) {
  const url = await emptyDatabase(t)
  await query(url, 'create schema shop')
  const { host } = new URL((await startProxy(t, url, certificate)).url)
  const { username, password, pathname, host: plain } = new URL(url)
  return { url, user: username, password, login: `${username}:${password}`, database: pathname.slice(1), plain, host: host.replace('127.0.0.1', 'localhost') }
}

t.test('attack 139: the URLs of hosts work as they are handed out', async t => {
  const authority = await privateAuthority('the authority of a host')
  const { url, user, password, login, database, plain, host } = await hostedDatabase(t, await authority.issue('localhost'))
  const folder = t.testdir({ 'global-bundle.pem': authority.cert })
  const ca = join(folder, 'global-bundle.pem')
  const sockets = await startSocket(t, url)
  for (const [name, handedOut] of Object.entries({
    Neon: `postgresql://${login}@${host}/${database}?sslmode=require&channel_binding=require&sslrootcert=${ca}`,
    'Neon without SNI': `postgresql://${login}@${host}/${database}?sslmode=require&options=-c%20svc.endpoint%3Dep-cool-dew-123`,
    'Supabase, session pooler': `postgresql://${login}@${plain}/${database}`,
    'Supabase, transaction pooler': `postgresql://${login}@${plain}/${database}?pgbouncer=true&connection_limit=1`,
    'Supabase by way of Vercel': `postgres://${login}@${host}/${database}?sslmode=require&supa=base-pooler.x&workaround=supabase-pooler.vercel`,
    RDS: `postgres://${login}@${host}/${database}?sslmode=verify-full&sslrootcert=${ca}`,
    Heroku: `postgres://${login}@${host}/${database}?sslmode=no-verify`,
    'Cloud SQL': `postgresql://${login}@/${database}?host=${sockets}&port=5433`,
    'a socket folder': `postgres://${login}@${encodeURIComponent(sockets)}:5433/${database}`,
    Prisma: `postgresql://${login}@${plain}/${database}?schema=shop&connection_limit=5&pool_timeout=10&sslmode=prefer&sslaccept=accept_invalid_certs`,
    libpq: `postgresql:///?host=${plain.split(':')[0]}&port=${plain.split(':')[1]}&dbname=${database}&user=${user}&password=${password}` +
      '&keepalives=1&keepalives_idle=30&gssencmode=disable&target_session_attrs=any&client_encoding=UTF8&connect_timeout=10',
    'a copied line': ` postgres://${login}@${plain}/${database}?application_name=shop\r\n`
  })) {
    const browser = new Browser(await startApp(t, { local: localProvider(), store: new SqlAuthStore(handedOut) }))
    const form = { email: `${Buffer.from(name).toString('hex').slice(0, 40)}@example.com`, password: 'correct horse', name: 'Łukasz' }
    t.equal((await browser.post('/auth/local/register', form)).statusCode, 201, name)
    await browser.app.close()
  }
  t.strictSame(
    await query(url, "select distinct table_schema as schema from information_schema.tables where table_name = 'svc_auth_users' order by 1"),
    [{ schema: 'public' }, { schema: 'shop' }],
    'the schema of Prisma is where the tables are'
  )
})

/** Where a password ends up, as it is and not escaped. */
const FORMS: Array<(secret: string) => string> = [
  secret => `postgres://ada:${secret}@db.example/app`,
  secret => `postgres://ada:${secret}@db.example:5432,two.example/app?sslmode=require`,
  secret => `postgres://db.example/app?user=ada&password=${secret}`,
  secret => `postgres://db.example/app?${secret.replaceAll('=', '')}`,
  secret => `postgres://db.example/app?sslmode=${secret.replaceAll('=', '')}`,
  secret => `postgres:${secret}`,
  secret => `"postgres://ada:${secret}@db.example/app"`,
  secret => `psql 'postgres://ada:${secret}@db.example/app'`,
  secret => `DATABASE_URL=postgres://ada:${secret}@db.example/app`,
  secret => `host=db.example user=ada password=${secret}`,
  secret => `Server=db.example;Password=${secret}`,
  secret => `ada:${secret}@db.example:5432/app`,
  secret => `mysql://ada:${secret}@db.example/app`,
  secret => `file://ada:${secret}@db.example/app`,
  secret => `./users.db?password=${secret}`
]

t.test('attack 139: no password is shown, and none becomes the name of a file, wherever it ends up', async t => {
  // Characters that URLs, shells and paths know, between words that no message has.
  const secrets = fc.array(fc.oneof(fc.stringMatching(/^[qxz]{5,8}$/), fc.constantFrom(...' &=?#/@:%+;,"\'\\$.<>[]{}2')), { minLength: 1, maxLength: 8 })
  await holds(t, fc.asyncProperty(fc.constantFrom(...FORMS), secrets, async (form, parts) => {
    try {
      return sqlTarget(form(parts.join(''))).dialect === 'postgres'
    } catch (error) {
      return error instanceof OptionsError && !/[qxz]{5}/.test(inspect(error, { depth: null, showHidden: true }))
    }
  }), 30_000)
})

t.test('attack 139: an unknown parameter stops the start by its name, and not every request', async t => {
  for (const parameter of ['sslidentity=client.p12', 'requirepeer=postgres', 'pool_max_conns=10', 'hunter=2', 'loadBalanceHosts=true']) {
    const [name] = parameter.split('=')
    t.throws(() => new SqlAuthStore(`postgres://ada:secret@db.example/app?sslmode=require&${parameter}`), {
      name: 'OptionsError', message: new RegExp(`^target has the parameter ${name}, which the store does not know; leave it out`)
    })
  }
})
