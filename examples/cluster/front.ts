import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'

/**
 * Makes a server that hands requests to the processes in turn, whichever user they are of.
 *
 * @param upstreams the addresses of the processes that run, as they come and go
 */
export async function buildFront (upstreams: ReadonlySet<string>): Promise<FastifyInstance> {
  const front = Fastify({ logger: { level: 'error' } })
  await front.register(replyFrom, { destroyAgent: true })
  // A body is handed on as it comes.
  front.removeAllContentTypeParsers()
  front.addContentTypeParser('*', (_request, payload, done) => { done(null, payload) })

  let turn = 0
  front.all('/*', (request, reply) => {
    const [upstream, ...others] = inTurn([...upstreams], turn++)
    return pass(upstream, others)

    function pass (upstream: string | undefined, others: readonly string[]): FastifyReply {
      if (upstream === undefined) return reply.code(503).send('No process is left.\n')
      const [next, ...rest] = others
      return reply.from(undefined, {
        getUpstream: () => upstream,
        rewriteRequestHeaders: (_request, headers) => ({
          ...headers, host: request.headers.host, 'x-forwarded-for': request.ip
        }),
        // An answer of 503 is for the client: by default, it would be asked for up to ten times.
        retryDelay: () => null,
        // The process has ended a moment ago. What a form asks for may be done, so a form is not passed on again.
        onError: () => request.method === 'GET' ? pass(next, rest) : reply.code(502).send('The process has ended.\n')
      })
    }
  })

  return front
}

function inTurn<T> (items: readonly T[], turn: number): T[] {
  const first = turn % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}
