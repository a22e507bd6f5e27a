import type { FastifyInstance, FastifyReply } from 'fastify'
import { OptionsError } from '../errors.js'
import { type Operation, objectOf, operation } from './schema.js'

/** Lets caches keep an answer, but no error and no response that sets the cookie of a session. */
export function allowCaching (reply: FastifyReply, cacheControl: string): void {
  if (reply.statusCode === 200 && !reply.hasHeader('Set-Cookie')) reply.header('Cache-Control', cacheControl)
}

/** A JSON document that programs of anyone read. */
export interface PublicDocument extends Pick<Operation, 'summary' | 'description' | 'operationId'> {
  /** Its members, which are all required: JSON Schemas by name; default any. */
  members?: Readonly<Record<string, object>>
  /** How long caches may keep it, in seconds; default not at all. */
  maxAge?: number
}

export function mountDocument (
  scope: FastifyInstance, path: string, { members, maxAge, ...described }: PublicDocument,
  read: (reply: FastifyReply) => object
): void {
  const document = members === undefined
    ? { type: 'object', description: 'The document', additionalProperties: true }
    : objectOf('The document', members)
  scope.get(path, {
    schema: operation({ ...described, user: 'anyone', answers: { 200: document } }),
    onSend: async (_request, reply) => maxAge && allowCaching(reply, `public, max-age=${maxAge}`),
    exposeHeadRoute: false
  }, async (_request, reply) => read(reply))
}

/** Refuses the URL of a document that the application has already. */
export function assertFree (scope: FastifyInstance, url: string, options: string): void {
  if (!scope.hasRoute({ method: 'GET', url })) return
  throw new OptionsError(`the application has the route ${url} already; ` +
    `give ${options} to one registration of fastify-svc-auth, and mount no such route`)
}
