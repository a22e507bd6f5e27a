import { type Socket, createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import https from 'node:https'
import { createServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { type Network, INTERNET, UnreachableError, fetchPublic, isPublicUrl } from '../../lib/core/public-fetch.js'
import { selfSigned } from '../helpers/certificate.js'
import { hastenTime } from '../helpers/clock.js'
import { freePort, listening } from '../helpers/loopback.js'
import { publicHost } from '../helpers/public-host.js'

/** Asserts that nothing is fetched, and for which reason. */
async function refuses (t: Test, fetching: Promise<unknown>, rule: string): Promise<void> {
  const error = await fetching.then(() => null, (error: unknown) => error)
  t.type(error, UnreachableError)
  t.match(error, { message: rule, cause: undefined })
}

t.test('a document of a host of the internet is fetched by its name, without the identity of anyone', async t => {
  const { origin, network, resolved } = await publicHost(t, (request, response) => {
    response.setHeader('Content-Type', 'application/json').setHeader('Cache-Control', 'max-age=60')
    response.end(JSON.stringify({ path: request.url, headers: request.headers }))
  })

  const { body, ...rest } = await fetchPublic(`${origin}/client.json?a=b`, network)

  t.strictSame(rest, { url: `${origin}/client.json?a=b`, type: 'application/json', caching: 'max-age=60' })
  const { path, headers } = JSON.parse(body)
  t.equal(path, '/client.json?a=b')
  t.match(headers, { host: new URL(origin).host, 'accept-encoding': 'identity', connection: 'close', 'user-agent': 'fastify-svc-auth' })
  t.strictSame(Object.keys(headers).sort(), ['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
  t.strictSame(resolved, ['client.example'])
})

t.test('only https: URLs with the name of a host may be fetched', async t => {
  const refused = [
    'http://client.example/', 'ftp://client.example/', 'file:///etc/passwd', 'data:,a', '//client.example/', '', 'client.example',
    'https://user@client.example/', 'https://:a@client.example/', 'https://client.example/#a',
    'https://127.0.0.1/', 'https://127.1/', 'https://0x7f.1/', 'https://0177.0.0.1/', 'https://2130706433/', 'https://127.0.0.1./',
    'https://\u2460\u2461\u2466.0.0.1/', 'https://%31%32%37.0.0.1/', 'https://8.8.8.8/', 'https://[::1]/', 'https://[::ffff:127.0.0.1]/',
    'https://[2606:4700:4700::1111]/', 'https://[64:ff9b::7f00:1]:8443/', `https://client.example/${'a'.repeat(2048)}`
  ]

  t.strictSame(refused.filter(isPublicUrl), [])
  for (const url of refused) await refuses(t, fetchPublic(url, forbidden), 'the URL is not an https: URL with the name of a host')
  t.strictSame(['https://client.example/', 'https://client.example:8443/a?b', 'https://xn--bcher-kva.example'].filter(url => !isPublicUrl(url)), [])
})

/** No name is resolved in it. */
const forbidden: Network = { resolver: () => { throw new Error('resolved') }, isPublic: () => false }

t.test('attack 183: a host is not asked when one of its addresses is not public', async t => {
  let requests = 0
  const { origin, network, resolveTo } = await publicHost(t, (_request, response) => { requests++; response.end() })
  const addresses = [
    '127.0.0.2', '10.0.0.1', '169.254.169.254', '100.100.100.200', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1',
    '64:ff9b::7f00:1', '64:ff9b:1::a00:1', '2002:7f00:1::', '2001:0:a00:1::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1', 'ff02::1'
  ]

  for (const address of addresses) {
    const isIPv6 = address.includes(':')
    resolveTo(isIPv6 ? [] : [address], isIPv6 ? [address] : [])
    await refuses(t, fetchPublic(`${origin}/`, network), 'has an address that is not public')
    resolveTo(isIPv6 ? ['127.0.0.1'] : ['127.0.0.1', address], isIPv6 ? ['2606:4700:4700::1111', address] : [])
    await refuses(t, fetchPublic(`${origin}/`, network), 'has an address that is not public')
  }
  t.equal(requests, 0)
})

t.test('without a network of a test, no address of this machine is reached', async t => {
  const { origin, network } = await publicHost(t, (_request, response) => { response.end() })

  await refuses(t, fetchPublic(`${origin}/`, { ...network, isPublic: INTERNET.isPublic }), 'client.example')
  await refuses(t, fetchPublic(`${origin.replace('client.example', 'localhost')}/`), 'localhost')
})

t.test('attack 183: a name that is resolved once more leads nowhere else: the connection goes to the address that was checked', async t => {
  const { origin, network, resolved, resolveTo } = await publicHost(t, (_request, response) => {
    resolveTo(['10.0.0.1'])
    response.end('first')
  })

  t.match(await fetchPublic(`${origin}/`, network), { body: 'first' })
  t.equal(resolved.length, 1, 'it was resolved once')
  await refuses(t, fetchPublic(`${origin}/`, network), 'has an address that is not public')
})

t.test('the agent of the process, which may lead to a proxy, is not asked', async t => {
  const { origin, network } = await publicHost(t, (_request, response) => { response.end('here') })
  const { globalAgent } = https
  https.globalAgent = Object.assign(new https.Agent(), { createConnection () { throw new Error('connected by a proxy') } })
  t.teardown(() => { https.globalAgent = globalAgent })

  t.match(await fetchPublic(`${origin}/`, network), { body: 'here' })
})

t.test('an address at which nobody answers gives way to the next one', async t => {
  const { origin, network, resolveTo } = await publicHost(t, (_request, response) => { response.end('here') })
  resolveTo(['127.0.0.9', '127.0.0.1'])

  const { body } = await fetchPublic(`${origin}/`, { ...network, isPublic: address => address.startsWith('127.0.0.') })

  t.equal(body, 'here')
})

t.test('a host must have the certificate of its name', async t => {
  const { origin, network } = await publicHost(t, (_request, response) => { response.end() })
  const { cert } = await selfSigned('client.example')

  await refuses(t, fetchPublic(`${origin.replace('client', 'other')}/`, network), 'could not be reached by https')
  await refuses(t, fetchPublic(`${origin}/`, { ...network, ca: cert }), 'could not be reached by https')
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.teardown(() => { delete process.env.NODE_TLS_REJECT_UNAUTHORIZED })
  await refuses(t, fetchPublic(`${origin}/`, { ...network, ca: cert }), 'could not be reached by https')
})

t.test('attack 183: no redirect is followed, and no other status is an answer', async t => {
  const paths: Array<string | undefined> = []
  let status = 0
  const { origin, network } = await publicHost(t, (request, response) => {
    paths.push(request.url)
    response.writeHead(status, { location: '/elsewhere' }).end('secret')
  })

  const statuses = [201, 204, 206, 301, 302, 303, 307, 308, 400, 403, 404, 429, 500, 503]
  for (status of statuses) await refuses(t, fetchPublic(`${origin}/`, network), 'did not answer with the status 200')
  t.strictSame(paths, statuses.map(() => '/'))
})

t.test('a body of 5 KB is read, and one byte more is too much, announced or not', async t => {
  let [length, isAnnounced] = [5 * 1024, true]
  const { origin, network } = await publicHost(t, (_request, response) => {
    if (isAnnounced) response.setHeader('Content-Length', length)
    response.end('a'.repeat(length))
  })

  t.match(await fetchPublic(`${origin}/`, network), { body: 'a'.repeat(length) })
  length++
  await refuses(t, fetchPublic(`${origin}/`, network), 'sent more than 5 KB')
  isAnnounced = false
  await refuses(t, fetchPublic(`${origin}/`, network), 'sent more than 5 KB')
})

t.test('attack 183: an endless body is left, and its connection closed', async t => {
  const { origin, network } = await publicHost(t, (_request, response) => {
    const send = (): void => { while (!response.destroyed && response.write('a'.repeat(1000))); }
    response.on('drain', send).on('close', () => closed())
    send()
  })
  let closed = (): void => {}
  const isClosed = new Promise<void>(resolve => { closed = resolve })

  await refuses(t, fetchPublic(`${origin}/`, network), 'sent more than 5 KB')
  await isClosed
})

t.test('a compressed body is refused, however small it is', async t => {
  let encoding = ''
  const { origin, network } = await publicHost(t, (_request, response) => {
    response.setHeader('Content-Encoding', encoding).end(gzipSync('a'.repeat(1_000_000)))
  })

  for (encoding of ['gzip', 'br', 'deflate', 'zstd', 'gzip, identity', 'x']) {
    await refuses(t, fetchPublic(`${origin}/`, network), 'sent an encoding that was not asked for')
  }
})

t.test('an answer that is cut off is not a document', async t => {
  const { origin, network } = await publicHost(t, (_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{}', () => { response.destroy() })
  })

  await refuses(t, fetchPublic(`${origin}/`, network), 'could not be reached by https')
})

t.test('long headers, another protocol and no protocol at all are refused', async t => {
  const { key, cert } = await selfSigned('client.example')
  let answer = ''
  const server = createServer({ key, cert }, socket => { socket.on('error', () => {}).once('data', () => { socket.end(answer) }) })
  const port = await listening(server)
  t.teardown(() => { server.close() })
  const { network } = await publicHost(t, (_request, response) => { response.end() })

  for (answer of [
    `HTTP/1.1 200 OK\r\nX-Long: ${'a'.repeat(9000)}\r\nContent-Length: 2\r\n\r\n{}`,
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    'SSH-2.0-OpenSSH_9.6\r\n',
    ''
  ]) await refuses(t, fetchPublic(`https://client.example:${port}/`, { ...network, ca: cert }), 'could not be reached by https')
})

t.test('a host that refuses connections is not told from one that breaks them off', async t => {
  const { network } = await publicHost(t, (_request, response) => { response.end() })

  await refuses(t, fetchPublic(`https://client.example:${await freePort()}/`, network), 'could not be reached by https')
})

t.test('attack 183: everything together takes 2.5 seconds at most', async t => {
  const { origin, network: { timeLimit: _, ...network } } = await publicHost(t, (request, response) => {
    if (request.url === '/silent') return
    const timer = setInterval(() => { response.write('a') }, 20)
    response.on('close', () => { clearInterval(timer) })
    response.writeHead(200).write('a')
  })
  hastenTime(t, 10)

  for (const path of ['/silent', '/drip']) await refuses(t, fetchPublic(origin + path, network), 'did not answer within 2.5 seconds')
  let cancelled = false
  let fail = (_error: Error): void => {}
  const slow = async (): Promise<never> => new Promise((_resolve, reject) => { fail = reject })
  const cancel = (): void => { cancelled = true; fail(new Error('ECANCELLED')) }
  const late = fetchPublic(origin, { ...network, resolver: () => ({ resolve4: slow, resolve6: async () => [], resolveTxt: slow, cancel }) })
  await refuses(t, late, 'did not answer within 2.5 seconds')
  t.ok(cancelled)
})

t.test('names are resolved by a name server, with the addresses of both kinds, and the wait for a silent one ends', async t => {
  const { origin, network } = await publicHost(t, (_request, response) => { response.end('here') })
  let answers: Readonly<Record<number, readonly number[]>> | null = { 1: [127, 0, 0, 1] }
  const port = await nameServer(t, type => answers === null ? null : answers[type] ?? [])
  const inTest: Network = {
    ...network,
    resolver: () => {
      const resolver = INTERNET.resolver()
      if (!(resolver instanceof Resolver)) throw new Error('not a resolver')
      resolver.setServers([`127.0.0.1:${port}`])
      return resolver
    }
  }

  t.match(await fetchPublic(`${origin}/`, inTest), { body: 'here' })
  answers = { 1: [127, 0, 0, 1], 28: [0xfd, ...Array<number>(14).fill(0), 1] }
  await refuses(t, fetchPublic(`${origin}/`, inTest), 'has an address that is not public')
  answers = {}
  await refuses(t, fetchPublic(`${origin}/`, inTest), 'has no address')
  answers = null
  hastenTime(t, 10)
  await refuses(t, fetchPublic(`${origin}/`, inTest), 'did not answer within 2.5 seconds')
})

/** Starts a name server that answers each question with one address of the type asked, with none, or not at all. */
async function nameServer (t: Test, addressOf: (type: number) => readonly number[] | null): Promise<number> {
  const socket: Socket = createSocket('udp4', (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5
    const found = addressOf(query.readUInt16BE(end - 4))
    if (found === null) return
    const header = Buffer.from([0x81, 0x80, 0, 1, 0, found.length > 0 ? 1 : 0, 0, 0, 0, 0])
    const record = found.length === 0
      ? Buffer.alloc(0)
      : Buffer.from([0xc0, 12, ...query.subarray(end - 4, end), 0, 0, 0, 1, 0, found.length, ...found])
    socket.send(Buffer.concat([query.subarray(0, 2), header, query.subarray(12, end), record]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => { socket.close() })
  return socket.address().port
}
