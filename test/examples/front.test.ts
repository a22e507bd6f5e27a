import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { buildFront } from '../../examples/cluster/front.js'
import { freePort } from '../helpers/loopback.js'

t.test('requests and answers pass the front as they are', async t => {
  const front = await startFront(t, [await startUpstream(t, 'one')])
  const response = await fetch(`${front}/form?a=b&a=c`, {
    method: 'POST', redirect: 'manual', body: new URLSearchParams({ name: 'Ada' }), headers: { origin: front, cookie: 'a=b', 'x-forwarded-for': '192.0.2.1' }
  })

  t.equal(response.status, 303)
  t.equal(response.headers.get('location'), '/next')
  t.same(response.headers.getSetCookie(), ['one=1; Path=/; HttpOnly', 'two=2; Path=/'])
  t.match(await response.json(), {
    url: '/form?a=b&a=c',
    body: 'name=Ada',
    headers: {
      host: front.slice('http://'.length),
      origin: front,
      cookie: 'a=b',
      'content-type': /^application\/x-www-form-urlencoded/,
      'x-forwarded-for': '127.0.0.1'
    }
  }, 'the address is that of the client, not what it says')
})

t.test('the processes have turns', async t => {
  const front = await startFront(t, [await startUpstream(t, 'one'), await startUpstream(t, 'two')])
  for (const name of ['one', 'two', 'one', 'two']) t.match(await (await fetch(front)).json(), { name })
})

t.test('a page is asked for at another process when one has ended, and a form is not', async t => {
  const ended = `http://127.0.0.1:${await freePort()}`
  const front = await startFront(t, [ended, await startUpstream(t, 'one')])

  for (let turn = 0; turn < 3; turn++) t.equal((await fetch(front)).status, 200)
  t.equal((await fetch(front, { method: 'POST', redirect: 'manual' })).status, 303)
  t.equal((await fetch(front, { method: 'POST', redirect: 'manual' })).status, 502)
  const last = await fetch(await startFront(t, [ended]))
  t.equal(last.status, 503)
  t.equal(await last.text(), 'No process is left.\n')
})

t.test('a process that is busy is asked once', async t => {
  let times = 0
  const busy = Fastify()
  busy.get('/', async (_request, reply) => reply.code(503).send({ times: ++times }))
  const response = await fetch(await startFront(t, [await started(t, busy)]))

  t.equal(response.status, 503)
  t.same(await response.json(), { times: 1 })
})

/** @returns the address of a front before these processes */
async function startFront (t: Test, upstreams: readonly string[]): Promise<string> {
  return started(t, await buildFront(new Set(upstreams)))
}

/** @returns the address of a server that tells what it was asked */
async function startUpstream (t: Test, name: string): Promise<string> {
  const upstream = Fastify()
  upstream.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => { done(null, body) })
  upstream.all('/*', async ({ method, url, headers, body }, reply) => {
    if (method === 'POST') reply.code(303).header('location', '/next').header('set-cookie', ['one=1; Path=/; HttpOnly', 'two=2; Path=/'])
    return { name, url, headers, body }
  })
  return started(t, upstream)
}

async function started (t: Test, server: FastifyInstance): Promise<string> {
  t.teardown(() => server.close())
  return server.listen({ host: '127.0.0.1', port: 0 })
}
