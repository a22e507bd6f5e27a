/** The modes of TLS on a Postgres server that speaks it, with certificates of an authority of its own. */
import { appendFileSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { SqlAuthStore } from '../../../lib/index.js'
import { type Certificate, privateAuthority } from '../../helpers/certificate.js'
import { startEmbeddedPostgres } from '../../helpers/embedded-postgres.js'
import { clientOf } from '../../helpers/postgres.js'
import { isSoon } from '../../helpers/soon.js'
import { startProcess } from '../start-process.js'
import { testTlsModes } from './tls-modes.js'

const ADA = { email: 'ada@example.com' }

const folder = mkdtempSync(join(tmpdir(), 'svc-auth-tls-'))
const server = await startEmbeddedPostgres(folder, { initdbFlags: ['--no-sync'], settings: ['ssl_ca_file=authority.crt'] })
const admin = clientOf(t, server.url)
t.teardown(async () => {
  await admin.end()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Writes a file that the server reads, as its own. */
function write (name: string, content: string): string {
  const file = join(server.databaseDir, name)
  writeFileSync(file, content, { mode: 0o600 })
  const { uid, gid } = statSync(server.databaseDir)
  chownSync(file, uid, gid)
  return file
}

/** Lets the server use a certificate, for connections from now on. */
async function use ({ key, cert }: Certificate): Promise<string> {
  write('server.key', key)
  write('server.crt', cert)
  // The server reads files again when a setting changes or it is told to; the session shows when it has.
  const [before] = await admin`select pg_conf_load_time() as time`
  await admin`alter system set ssl = on`
  await admin`select pg_reload_conf()`
  await isSoon(async () => (await admin`select pg_conf_load_time() as time, current_setting('ssl') as ssl`)
    .some(({ time, ssl }) => ssl === 'on' && String(time) !== String(before?.time)))
  return server.url
}

const authority = await privateAuthority('the authority of the server')
const ca = write('authority.crt', authority.cert)

t.test('a server without TLS', async t => {
  for (const mode of ['disable', 'allow', 'prefer', 'require', 'no-verify', 'verify-full']) {
    const store = new SqlAuthStore(`${server.url}?sslmode=${mode}`)
    t.teardown(() => store.close())
    if (['disable', 'allow', 'prefer'].includes(mode)) t.equal(await store.findUser(ADA), null, mode)
    else await t.rejects(store.findUser(ADA), { code: 'unavailable', cause: { message: /whether it offers TLS \(ssl = on\)$/ } }, mode)
  }
})

testTlsModes('attack 139: the modes of TLS at a Postgres server', async (_t, certificate) => use(certificate))

t.test('connections are encrypted where the mode says so', async t => {
  const url = await use(await authority.issue('127.0.0.1'))
  for (const [parameters, isEncrypted] of [
    ['', false], ['sslmode=disable', false], ['sslmode=allow', true], ['sslmode=prefer', true], ['sslmode=require', true], ['sslmode=no-verify', true],
    [`sslmode=verify-full&sslrootcert=${ca}`, true], [`sslmode=verify-ca&sslrootcert=${ca}`, true], ['sslmode=require&sslnegotiation=direct', true]
  ] as const) {
    const store = new SqlAuthStore(`${url}?application_name=encrypted&${parameters}`)
    await store.findUser(ADA)
    const connections = await admin`select ssl from pg_stat_activity join pg_stat_ssl using (pid) where application_name = 'encrypted'`
    t.ok(connections.length > 0 && connections.every(({ ssl }) => ssl === isEncrypted), parameters)
    await store.close()
    t.ok(await isSoon(async () => (await admin`select from pg_stat_activity where application_name = 'encrypted'`).length === 0))
  }
})

t.test('a server that demands TLS says so, and one that demands a certificate of the client gets it', async t => {
  const url = await use(await authority.issue('127.0.0.1'))
  write('pg_hba.conf', 'local all all trust\nhostssl all guest 127.0.0.1/32 cert\nhostssl all postgres 127.0.0.1/32 scram-sha-256\n')
  await admin`create role guest login superuser`
  await admin`select pg_reload_conf()`
  t.teardown(async () => appendFileSync(join(server.databaseDir, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n'))
  const plain = new SqlAuthStore(url)
  t.teardown(() => plain.close())
  t.ok(await isSoon(() => plain.findUser(ADA).then(() => false, ({ cause }) => /; where the server demands TLS, add sslmode=verify-full/.test(String(cause)))))

  const { key, cert } = await authority.issue('guest')
  const files = t.testdir({ 'guest.key': key, 'guest.crt': cert })
  const guest = Object.assign(new URL(url), { username: 'guest', password: '' }).href
  const verified = `sslmode=verify-full&sslrootcert=${ca}`
  const known = new SqlAuthStore(`${guest}?${verified}&sslcert=${files}/guest.crt&sslkey=${files}/guest.key`)
  t.teardown(() => known.close())
  t.equal(await known.findUser(ADA), null)
  const unknown = new SqlAuthStore(`${guest}?${verified}`)
  t.teardown(() => unknown.close())
  await t.rejects(unknown.findUser(ADA), { code: 'unavailable' })
})

t.test('without sslrootcert, and with sslrootcert=system, the authorities count that Node.js trusts', async t => {
  const url = await use(await authority.issue('localhost'))
  process.env.NODE_EXTRA_CA_CERTS = ca
  t.teardown(() => { delete process.env.NODE_EXTRA_CA_CERTS })
  for (const parameters of ['sslmode=verify-full', 'sslrootcert=system', 'sslmode=require&channel_binding=require', 'ssl=true', 'sslmode=verify-ca']) {
    const right = await startProcess(t, `${url.replace('127.0.0.1', 'localhost')}?${parameters}`)
    t.strictSame(await right(['findUser', ADA]), { result: null }, parameters)
    const other = await startProcess(t, `${url}?${parameters}`)
    t.match(await other(['findUser', ADA]), { error: { code: 'unavailable', cause: /; connect to a host that the certificate is for/ } }, parameters)
    await Promise.all([right.end(), other.end()])
  }
})
