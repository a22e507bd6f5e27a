/** A URL with several hosts: which of them a connection goes to. */
import { randomUUID } from 'node:crypto'
import { EventEmitter, on } from 'node:events'
import { type Socket, connect, createServer } from 'node:net'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import type { SqlAuthStore } from '../../lib/index.js'
import { Hosts } from '../../lib/engines/postgres/connection.js'
import { Ear, endingsIn, openStore } from '../helpers/revocations.js'
import { freePort, listening } from '../helpers/loopback.js'
import { emptyDatabase } from '../helpers/postgres.js'
import { startProxy } from '../helpers/tcp-proxy.js'
import { isThorough, some } from '../helpers/thorough.js'

// Most of these tests wait; each has what it waits for to itself.
t.jobs = 4
const BESIDE = { buffered: true }

const ADA = { email: 'ada@example.com' }

/** A store on a database that has its tables, by a URL with these hosts. Each has a second, as its share of the time limit would be longer. */
async function openOn (t: Test, url: string, hosts: string[], parameters = 'connect_timeout=1'): Promise<SqlAuthStore> {
  await openStore(t, url).findUser(ADA)
  return openStore(t, `${url.replace(new URL(url).host, hosts.join())}?${parameters}`)
}

/** A database behind two networks that can fail. */
async function twoHosts (t: Test) {
  const url = await emptyDatabase(t)
  const [one, two] = [await startProxy(t, url), await startProxy(t, url)]
  return { url, one, two, hosts: [one, two].map(({ url }) => new URL(url).host) }
}

/** Starts what a client connects to instead of Postgres, and returns its host. */
async function startHost (t: Test, serve: (client: Socket) => void): Promise<string> {
  const listener = createServer(client => { serve(client.on('error', () => {})) })
  t.teardown(() => { listener.close() })
  return `127.0.0.1:${await listening(listener)}`
}

/** How long a call takes, in milliseconds. */
async function timeOf (call: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await call()
  return performance.now() - start
}

for (const fate of some(['is silent', 'falls silent when ready', 'is closed'] as const, 2)) {
  t.test(`a first host that ${fate} is passed over, and the one that worked is asked first from then on`, BESIDE, async t => {
    const { url, one, two, hosts } = await twoHosts(t)
    const store = await openOn(t, url, hosts)
    one.fate = fate

    t.equal(await store.findUser(ADA), null)
    const asked = one.connections
    two.reset()
    await Promise.all(Array.from({ length: isThorough ? 20 : 5 }, () => store.findUser(ADA).catch(() => {})))

    t.equal(await store.findUser(ADA), null)
    t.equal(one.connections, asked)

    one.fate = 'works'
    two.fate = fate
    two.reset()
    await store.findUser(ADA).catch(() => {})
    t.equal(await store.findUser(ADA), null, 'the first one again')
    t.ok(one.connections > asked)
  })
}

t.test('each host has its share of the time limit, or less where connect_timeout says so', { ...BESIDE, jobs: 4 }, async t => {
  const { url, one, hosts } = await twoHosts(t)
  one.fate = 'is silent'
  const [silent = '', working = ''] = hosts
  const cases: Array<[hosts: string[], parameters: string, milliseconds: number]> = [
    [[silent, working], '', 2000],
    [[silent, working], 'connect_timeout=1', 1000],
    [[silent, working], 'connect_timeout=30', 2000],
    [[silent, working], 'connect_timeout=0', 2000],
    [[silent, silent, working], '', 2667]
  ]
  for (const [hosts, parameters, milliseconds] of some(cases, 2)) {
    t.test(`${hosts.length} hosts, ${parameters}`, BESIDE, async t => {
      const store = await openOn(t, url, hosts, parameters)
      const time = await timeOf(() => store.findUser(ADA))
      t.ok(time > milliseconds - 100 && time < 5000, `${time}`)
    })
  }
})

t.test('hosts that are all silent are unavailable within the time limit, and so is one alone', { ...BESIDE, jobs: 3 }, async t => {
  const { url, one, two, hosts } = await twoHosts(t)
  for (const proxy of [one, two]) proxy.fate = 'is silent'
  for (const [number, parameters, milliseconds] of [[2, '', 4000], [1, '', 4000], [1, 'connect_timeout=1', 1000]] as const) {
    t.test(`${number} hosts, ${parameters}`, BESIDE, async t => {
      const store = await openOn(t, url, hosts.slice(0, number), parameters)
      const time = await timeOf(() => t.rejects(store.findUser(ADA), {
        code: 'unavailable', cause: { message: /see whether the server is up and can be reached/ }
      }))
      t.ok(time > milliseconds - 100 && time < milliseconds + 1000, `${time}`)
    })
  }
})

/** A server that refuses each client with a code (Protocol, message formats: ErrorResponse). */
async function startRefusing (t: Test, code: string): Promise<string> {
  const refusal = Buffer.from(`E\0\0\0\0SFATAL\0VFATAL\0C${code}\0Mno\0\0`)
  refusal.writeInt32BE(refusal.length - 1, 1)
  return startHost(t, client => client.once('data', () => client.end(refusal)))
}

t.test('a host that starts up, shuts down or is full is passed over; what each host would refuse is reported at once', BESIDE, async t => {
  const { url, one, hosts: [working = ''] } = await twoHosts(t)
  for (const code of ['57P03', '57P01', '53300']) {
    const store = await openOn(t, url, [await startRefusing(t, code), working])
    t.equal(await store.findUser(ADA), null, code)
  }
  const { connections } = one

  const store = await openOn(t, url, [await startRefusing(t, '28P01'), working])

  await t.rejects(store.findUser(ADA), { code: 'unavailable', cause: { message: /correct user and password/ } })
  t.equal(one.connections, connections)
})

t.test('a host that does not take writes is passed over with target_session_attrs', BESIDE, async t => {
  const { url, one, hosts: [working = ''] } = await twoHosts(t)
  const { hostname, port } = new URL(url)
  const readOnly = await startHost(t, client => {
    const server = connect(Number(port), hostname).on('error', () => {}).on('close', () => { client.destroy() })
    server.pipe(client)
    // The first message begins the connection: a setting is added to those in it.
    client.once('data', start => {
      const message = Buffer.concat([start.subarray(0, -1), Buffer.from('options\0-c default_transaction_read_only=on\0\0')])
      message.writeInt32BE(message.length)
      server.write(message)
      client.pipe(server)
    })
  })
  const parameters = 'target_session_attrs=read-write'

  t.equal(await (await openOn(t, url, [readOnly, working], parameters)).findUser(ADA), null)
  t.ok(one.connections > 0)
  await t.rejects((await openOn(t, url, [readOnly, readOnly], parameters)).findUser(ADA), { code: 'unavailable' })
})

t.test('a store that is closed while it looks for a host asks no other one', BESIDE, async t => {
  const { url, one, two, hosts } = await twoHosts(t)
  const store = await openOn(t, url, hosts)
  one.fate = 'is silent'
  const asked = new Promise<void>(resolve => { one.hear = () => { resolve() } })

  const call = store.findUser(ADA)
  await Promise.all([t.rejects(call, { code: 'unavailable' }), asked.then(() => store.close())])

  t.equal(two.connections, 0)
})

t.test('endings are heard at the host that answers', BESIDE, async t => {
  const { url, one, hosts } = await twoHosts(t)
  const store = await openOn(t, url, hosts)
  one.fate = 'is silent'
  const [before, after] = [randomUUID(), randomUUID()]
  const ear = await Ear.of(store)

  await endingsIn(openStore(t, url)).record(before)
  await ear.hears(before)
  t.strictSame(ear.notes, [])

  await endingsIn(openStore(t, url)).record(after)
  await ear.hears(after)
  t.strictSame(ear.heard, [before, after])
})

t.test('a server that refuses connections is asked for its notifications once a second', BESIDE, async t => {
  const { url } = await twoHosts(t)
  const asked = new EventEmitter()
  const host = await startHost(t, client => {
    client.destroy()
    asked.emit('connection')
  })
  await Ear.of(await openOn(t, url, [host]))
  const connections = on(asked, 'connection')

  // Two in each round: one listens, one reads.
  const time = await timeOf(async () => { for (let count = 0; count < 5; count++) await connections.next() })

  t.ok(time > 1000, `${time}`)
})

t.test('hosts may have names and IPv6 addresses', BESIDE, async t => {
  const { url, hosts: [working = ''] } = await twoHosts(t)
  const port = await freePort()
  t.equal(await (await openOn(t, url, [`[::1]:${port}`, working.replace('127.0.0.1', 'localhost')])).findUser(ADA), null)
})

t.test('a host has its share of the time, and less where connect_timeout says so', BESIDE, async t => {
  const [one, two] = ['postgres://db/app', 'postgres://one,two/app']
  for (const [url, max, connectTimeout] of [
    [one, 10, 4000],
    [two, 10, 2000],
    [`${two}?connect_timeout=1&max=3`, 3, 1000],
    [`${two}?connect_timeout=0`, 10, 2000],
    [`${one}?max=0`, 10, 4000]
  ] as const) {
    const hosts = new Hosts(postgres, url)
    t.strictSame([hosts.max, hosts.connectTimeout], [max, connectTimeout], url)
  }
})

t.test('a store that prefers a standby takes the primary where there is none', BESIDE, async t => {
  const url = await emptyDatabase(t)
  await openStore(t, url).findUser(ADA)

  t.equal(await openStore(t, `${url}?target_session_attrs=prefer-standby`).findUser(ADA), null)
  await t.rejects(openStore(t, `${url}?target_session_attrs=standby`).findUser(ADA), { code: 'unavailable' })
})
