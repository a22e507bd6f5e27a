import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { postgresSettings } from '../../lib/engines/sql-target.js'
import { SqlAuthStore } from '../../lib/engines/sql.js'
import { setEnv } from '../helpers/environment.js'

const URL_OF_ADA = 'postgres://ada:secret@db.example:6543/app'

/** What a URL with these parameters says, beside what it says without. */
function saidBy (parameters: string, url = URL_OF_ADA) {
  const { hosts, options, connection, isUnverified, sessionAttrs, encryptionTo } = postgresSettings(`${url}?${parameters}`)
  const [first = { host: '', port: 0 }] = hosts
  return { hosts, options, connection, isUnverified, sessionAttrs, ssl: encryptionTo(first).ssl }
}

t.test('parts and parameters of a URL are read as libpq does', async t => {
  const cases: Array<[url: string, hosts: Array<[host: string, port: number]>, options: object]> = [
    ['postgres://', [['localhost', 5432]], {}],
    ['postgres:///app', [['localhost', 5432]], { database: 'app' }],
    ['postgres://ada@/app', [['localhost', 5432]], { user: 'ada', database: 'app' }],
    ['postgres://ada:p%40s%2Fs%23%3F%25+@db.example/my%20app', [['db.example', 5432]], { user: 'ada', password: 'p@s/s#?%+', database: 'my app' }],
    ['postgres://ada:p@s:s@db.example/app', [['db.example', 5432]], { user: 'ada', password: 'p@s:s', database: 'app' }],
    ['postgres://one.example,two.example:6000,[::1]:6001,[2001:db8::1]/app', [
      ['one.example', 5432], ['two.example', 6000], ['::1', 6001], ['2001:db8::1', 5432]
    ], { database: 'app' }],
    ['postgres:///app?host=/var/run/postgresql', [['/var/run/postgresql', 5432]], { database: 'app' }],
    ['postgres://%2Fvar%2Frun%2Fpostgresql/app', [['/var/run/postgresql', 5432]], { database: 'app' }],
    ['postgres://ada:secret@/app?host=/cloudsql/project:region:shop', [['/cloudsql/project:region:shop', 5432]], {
      user: 'ada', password: 'secret', database: 'app'
    }],
    ['postgres://ignored.example:6000/ignored?host=db.example&dbname=app&user=ada&password=a%26+b', [['db.example', 6000]], {
      user: 'ada', password: 'a&+b', database: 'app'
    }],
    ['postgres:///app?host=one.example,two.example&port=6000', [['one.example', 6000], ['two.example', 6000]], { database: 'app' }],
    ['postgres:///app?host=one.example,&port=6000,6001', [['one.example', 6000], ['localhost', 6001]], { database: 'app' }],
    ['postgres://db.example/app?port=6000', [['db.example', 6000]], { database: 'app' }]
  ]
  for (const [url, hosts, options] of cases) {
    const settings = postgresSettings(url)
    t.strictSame(settings.hosts, hosts.map(([host, port]) => ({ host, port })), url)
    const { user, password, database } = settings.options
    t.strictSame(Object.fromEntries(Object.entries({ user, password, database }).filter(([, value]) => value)), options, url)
  }
})

t.test('a URL without a host has that of the environment', async t => {
  for (const [PGHOST, host] of [['db.example', 'db.example'], ['/tmp', '/tmp'], ['::1', '::1']] as const) {
    setEnv(t, { PGHOST, PGPORT: '6000' })
    t.strictSame(postgresSettings('postgres:///app').hosts, [{ host, port: 6000 }])
    t.strictSame(postgresSettings('postgres://other.example:7000/app').hosts, [{ host: 'other.example', port: 7000 }])
  }
})

t.test('parameters of hosts and tools mean what they mean there', async t => {
  const without = saidBy('')
  t.match(without, { options: { prepare: true }, connection: {}, ssl: undefined })

  for (const [parameters, said] of [
    ['application_name=shop&search_path=app&statement_timeout=7000&TimeZone=UTC&app.tenant=7', {
      connection: { application_name: 'shop', search_path: 'app', statement_timeout: '7000', TimeZone: 'UTC', 'app.tenant': '7' }
    }],
    // Neon, for clients without SNI; Supabase; CockroachDB; and as scripts write it.
    ['options=endpoint%3Dep-cool-dew-123', { connection: { options: 'endpoint=ep-cool-dew-123' } }],
    ['options=-c%20search_path%3Dapp', { connection: { options: '-c search_path=app' } }],
    ['options=-c+search_path%3Dapp', { connection: { options: '-c search_path=app' } }],
    ['schema=my%22app', { connection: { search_path: '"my""app"' } }],
    ['schema=app&search_path=other', { connection: { search_path: 'other' } }],
    ['max=5&connect_timeout=3&idle_timeout=20&keep_alive=10', { options: { max: 5, connect_timeout: 3, idle_timeout: 20, keep_alive: 10 } }],
    ['connection_limit=1', { options: { max: 1 } }],
    ['connection_limit=1&max=4', { options: { max: 4 } }],
    ['prepare=false', { options: { prepare: false } }],
    ['prepare=0', { options: { prepare: false } }],
    ['pgbouncer=true', { options: { prepare: false } }],
    ['pgbouncer=true&prepare=true', { options: { prepare: true } }],
    ['pgbouncer=false', { options: { prepare: true } }],
    ['pool_mode=transaction', { options: { prepare: false } }],
    ['pool_mode=session', { options: { prepare: true } }],
    ['statement_cache_size=0', { options: { prepare: false } }],
    ['statement_cache_size=100', { options: { prepare: true } }],
    ['target_session_attrs=read-write', { sessionAttrs: 'read-write' }],
    ['sslmode=require&sslnegotiation=direct', { options: { sslnegotiation: 'direct' } }],
    ['sslmode=disable', { ssl: false }],
    ['ssl=false', { ssl: false }],
    ['sslmode=PREFER', { ssl: 'prefer' }],
    ['sslmode=disable&ssl=true', { ssl: false }],
    ['sslmode=no-verify', { isUnverified: true, ssl: { rejectUnauthorized: false } }],
    ['sslmode=require', { isUnverified: false, ssl: { rejectUnauthorized: false } }],
    ['host=/tmp&sslmode=verify-full', { ssl: false }]
  ] as const) t.match(saidBy(parameters), said, parameters)
})

t.test('parameters that change nothing are left out, and so are those without a value', async t => {
  const without = saidBy('')
  for (const parameters of [
    'channel_binding=prefer', 'channel_binding=disable', 'gssencmode=disable', 'gssencmode=prefer', 'client_encoding=UTF8',
    'client_encoding=auto', 'target_session_attrs=any', 'keepalives=1&keepalives_idle=30&keepalives_interval=5&keepalives_count=3',
    'pool_timeout=10', 'socket_timeout=10', 'supa=base-pooler.x', 'workaround=supabase-pooler.vercel', 'uselibpqcompat=true',
    'fallback_application_name=psql', 'sslcompression=0', 'max_lifetime=60', 'sslaccept=accept_invalid_certs',
    'sslmode=&host=&port=&user=&password=&search_path=&schema=&options='
  ]) t.strictSame(saidBy(parameters), without, parameters)
})

const REFUSED: Array<[parameters: string, message: string]> = [
  ['hunter=2', 'the parameter hunter, which the store does not know; leave it out, or write a setting of Postgres in options'],
  ['sslidentity=client.p12', 'the parameter sslidentity, which'],
  ['currentSchema=app', 'the parameter currentSchema, which'],
  ['replication=database', 'the parameter replication, which'],
  ['require_auth=scram-sha-256', 'the parameter require_auth, which'],
  ['sslmode=secret', 'the parameter sslmode, whose value must be one of disable, allow, prefer, require, verify-ca, verify-full, no-verify'],
  ['gssencmode=require', 'the parameter gssencmode, whose value must be one of disable, prefer'],
  ['channel_binding=secret', 'the parameter channel_binding, whose'],
  ['target_session_attrs=secret', 'the parameter target_session_attrs, whose'],
  ['client_encoding=LATIN1', 'the parameter client_encoding, whose'],
  ['port=secret', 'the parameter port, which must be a number from 1 to 65535'],
  ['port=70000', 'the parameter port, which'],
  ['sslrootcert=secret.pem', 'the parameter sslrootcert, which needs sslmode=verify-full'],
  ['sslmode=prefer&sslrootcert=secret.pem', 'the parameter sslrootcert, which'],
  ['sslmode=disable&sslrootcert=secret.pem', 'the parameter sslrootcert, which'],
  ['sslmode=no-verify&sslrootcert=secret.pem', 'the parameter sslrootcert, which'],
  ['sslmode=disable&sslrootcert=system', 'the parameter sslrootcert, which'],
  ['sslmode=disable&channel_binding=require', 'the parameter channel_binding, which needs sslmode=verify-full'],
  ['sslmode=no-verify&channel_binding=require', 'the parameter channel_binding, which'],
  ['sslmode=disable&sslaccept=strict', 'the parameter sslaccept, which'],
  ['sslcert=secret.pem&sslkey=secret.key', 'the parameter sslcert, which needs sslmode=verify-full'],
  ['sslmode=prefer&sslcert=secret.pem&sslkey=secret.key', 'the parameter sslcert, which'],
  ['sslmode=require&sslcert=secret.pem', 'the parameter sslcert, which needs sslkey'],
  ['sslmode=require&sslkey=secret.key', 'the parameter sslcert, which needs sslkey'],
  // These may be parts of a password.
  ['hunter2=1', 'the parameter (not shown), which'],
  ['hunter secret=1', 'the parameter (not shown), which'],
  [`${'secret'.repeat(9)}=1`, 'the parameter (not shown), which'],
  ['password=hun&secret=2', 'the parameter (not shown), which'],
  ['secret=2@db.example/app', 'the parameter (not shown), which']
]

t.test('any other parameter is refused by its name when the store is constructed, and no value is shown', async t => {
  for (const [parameters, message] of REFUSED) refuses(t, `${URL_OF_ADA}?${parameters}`, `target has ${message}`)
})

function refuses (t: Test, url: string, message: string): void {
  const error = t.throws(() => new SqlAuthStore(url), { name: 'OptionsError', code: 'invalid_options' }, url)
  t.ok(error instanceof Error && error.message.startsWith(message), `${url}: ${String(error)}`)
  t.notMatch(inspect(error, { depth: null, showHidden: true }).replaceAll(import.meta.filename, ''), /secret|hunter2|LATIN1|70000/)
}
