import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { PublicDocuments } from '../../lib/core/public-documents.js'
import { AuthError, invalidRequest } from '../../lib/errors.js'
import { advanceClock } from '../helpers/clock.js'
import { type PublicHost, publicHost } from '../helpers/public-host.js'

const [SECOND, MINUTE, DAY] = [1000, 60_000, 24 * 60 * 60_000]

/** Documents of a host that answers with the number of the request, unless `answer` does. */
async function documentsOf (t: Test, answer?: RequestListener): Promise<PublicHost & {
  documents: PublicDocuments<string>
  requests: () => number
  get: (path: string, address?: string) => Promise<string>
}> {
  let requests = 0
  const host = await publicHost(t, (request, response) => {
    requests++
    if (answer === undefined) response.end(String(requests))
    else answer(request, response)
  })
  const read = ({ body }: { body: string }): string => {
    if (body === 'wrong') throw invalidRequest('The document is wrong.')
    return `read ${body}`
  }
  const documents = new PublicDocuments('The application cannot be reached.', read, host.network)
  return { ...host, documents, requests: () => requests, get: async (path, address = '192.0.2.1') => documents.get(host.origin + path, address) }
}

t.test('what was made of a document is cached as its headers say, for a day at most, five minutes without them', async t => {
  let caching: string | undefined
  const { get, requests } = await documentsOf(t, (_request, response) => {
    if (caching !== undefined) response.setHeader('Cache-Control', caching)
    response.end('{}')
  })
  const cases: ReadonlyArray<readonly [caching: string | undefined, lifetime: number]> = [
    [undefined, 5 * MINUTE], ['public', 5 * MINUTE], ['max-age=60', MINUTE], ['public, MAX-AGE="120"', 2 * MINUTE], ['max-age=31536000', DAY],
    [`max-age=${'9'.repeat(400)}`, DAY], ['x-max-age=1', 5 * MINUTE], ['max-age=-1', 5 * MINUTE],
    ['max-age=0', 0], ['no-store', 0], ['max-age=60, no-cache', 0], ['No-Store, max-age=60', 0]
  ]
  let [at, now, client] = [Date.now(), Date.now(), 0]
  t.intercept(Date, 'now', { value: () => now })

  for ([caching] of cases) {
    const lifetime = cases.find(([given]) => given === caching)?.[1] ?? NaN
    const [path, address] = [`/${client}`, `192.0.2.${client++}`]
    const before = requests()
    now = at
    t.equal(await get(path, address), 'read {}')
    if (lifetime > 0) {
      now = at + lifetime - 1
      await get(path, address)
      t.equal(requests(), before + 1, `${caching}: cached`)
    }
    now = at + lifetime
    await get(path, address)
    t.equal(requests(), before + 2, `${caching}: fetched again`)
    at = now
  }
})

t.test('a failure is 503 with our rule as its cause, and holds for thirty seconds', async t => {
  let status = 403
  const { get, requests, origin } = await documentsOf(t, (_request, response) => { response.writeHead(status, { 'retry-after': '9' }).end('secret') })
  const expected = {
    code: 'unavailable',
    statusCode: 503,
    message: 'The application cannot be reached.',
    retryAfter: 30,
    cause: new Error(`${new URL(origin).host} did not answer with the status 200`)
  }

  await t.rejects(get('/'), expected)
  await t.rejects(get('/', '192.0.2.2'), expected)
  t.equal(requests(), 1)
  status = 200
  advanceClock(t, 31 * SECOND)
  t.equal(await get('/'), 'read secret')
})

t.test('a document that is refused is not cached, and not asked for again within thirty seconds', async t => {
  let body = 'wrong'
  const { get, requests } = await documentsOf(t, (_request, response) => { response.setHeader('Cache-Control', 'max-age=86400').end(body) })

  for (let times = 0; times < 3; times++) await t.rejects(get('/'), { code: 'invalid_request', message: 'The document is wrong.' })
  t.equal(requests(), 1)
  body = 'right'
  advanceClock(t, 31 * SECOND)
  t.equal(await get('/'), 'read right')
})

t.test('each URL is fetched once at a time, for all who ask', async t => {
  const { get, requests } = await documentsOf(t, (_request, response) => { response.setHeader('Cache-Control', 'no-store').end('{}') })

  const found = await Promise.all(Array.from({ length: 100 }, async (_, client) => get('/', `192.0.2.${client}`)))

  t.equal(requests(), 1)
  t.strictSame(new Set(found), new Set(['read {}']))
  await get('/')
  t.equal(requests(), 2)
})

t.test('eight documents are fetched at a time; who has no place among those that wait is told that the server is busy', async t => {
  const answers: Array<() => void> = []
  let [most, running] = [0, 0]
  const { get, requests } = await documentsOf(t, (_request, response) => {
    most = Math.max(most, ++running)
    answers.push(() => { running--; response.end('{}') })
    if (running === 8) for (const answer of answers.splice(0)) answer()
  })

  const found = await Promise.allSettled(Array.from({ length: 32 }, async (_, path) => get(`/${path}`, `192.0.2.${path}`)))

  const refused = found.flatMap(result => result.status === 'rejected' ? [result.reason] : [])
  t.equal(refused.length, 8)
  t.ok(refused.every(reason => reason instanceof AuthError && reason.code === 'busy'))
  t.equal(most, 8)
  t.equal(requests(), 24)
  const [path] = found.flatMap((result, path) => result.status === 'rejected' ? [path] : [])
  const again = Array.from({ length: 8 }, async (_, other) => get(other === 0 ? `/${path}` : `/more${other}`, `192.0.2.${other}`))
  t.equal((await Promise.all(again)).length, 8, 'a lack of places is not remembered')
})

t.test('a client causes thirty fetches a minute, whether they fail or not, and is served from the cache beyond', async t => {
  const { get, requests } = await documentsOf(t, (request, response) => {
    response.writeHead(request.url?.endsWith('0') === true ? 500 : 200).end('{}')
  })

  for (let path = 1; path <= 30; path++) await get(`/${path}`).catch(() => {})
  await t.rejects(get('/31'), { code: 'rate_limited', statusCode: 429 })
  t.equal(requests(), 30)
  t.equal(await get('/1'), 'read {}')
  t.equal(await get('/31', '192.0.2.2'), 'read {}', 'another client has a share of its own')
  advanceClock(t, MINUTE)
  t.equal(await get('/32'), 'read {}')
})

t.test('the cache has a limit, and what is not a public URL is not fetched', async t => {
  const { documents, get, requests } = await documentsOf(t)

  for (let path = 0; path <= 500; path++) await get(`/${path}`, `192.0.2.${path}`)
  await get('/500')
  t.equal(requests(), 501)
  await get('/0')
  t.equal(requests(), 502)
  await t.rejects(documents.get('https://127.0.0.1/', ''), {
    code: 'unavailable', cause: new Error('the URL is not an https: URL with the name of a host')
  })
})
