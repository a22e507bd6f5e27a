import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Passwords } from '../local-identity-provider.js'
import type { Outbox } from './mail-links.js'

/** A request with a form. Its outbox is made when an act asks for it. */
export interface Submission<Fields> {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly fields: Fields
  readonly outbox: Outbox
}

/** A form that says what it `hashes`: any other cannot ask for passwords. */
export interface HashingSubmission<Fields> extends Submission<Fields> {
  readonly passwords: Passwords
}
