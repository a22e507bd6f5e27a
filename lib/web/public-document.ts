import type { FastifyInstance, FastifyReply } from 'fastify'
import { allowCaching } from './caching.js'
import { type Operation, operation } from './schema-parts.js'

/** A JSON document that programs of anyone read. */
export interface PublicDocument extends Pick<Operation, 'summary' | 'description' | 'operationId'> {
  /** Its members, which are all required: JSON Schemas by name; default any. */
  members?: Readonly<Record<string, object>>
  /** How long caches may keep it, in seconds; default not at all. */
  maxAge?: number
}

/** Mounts a document at a path of the scope. */
export function mountDocument (
  scope: FastifyInstance, path: string, { members, maxAge, ...described }: PublicDocument,
  read: (reply: FastifyReply) => object
): void {
  const content = members === undefined
    ? { additionalProperties: true }
    : { required: Object.keys(members), properties: members }
  const answers = { 200: { type: 'object', description: 'The document', ...content } }
  scope.get(path, {
    schema: operation({ ...described, user: 'anyone', answers }),
    onSend: async (_request, reply) => maxAge && allowCaching(reply, `public, max-age=${maxAge}`),
    exposeHeadRoute: false
  }, async (_request, reply) => read(reply))
}
