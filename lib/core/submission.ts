import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Outbox } from './mail-links.js'

/** A request with a form. Its outbox is made when an act asks for it. */
export interface Submission<Fields> {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly fields: Fields
  readonly outbox: Outbox
}

/** Hashes and compares passwords for the sender of a form. */
export interface Passwords {
  readonly hashPassword: (password: string, about: { email: string }) => Promise<string>
  readonly rehashPassword: (password: string) => Promise<string>
  readonly verifyPassword: (hash: string | null, password: string) => Promise<{ matches: boolean, outdated: boolean }>
}

/** A form that says what it `hashes`: any other cannot ask for passwords. */
export interface HashingSubmission<Fields> extends Submission<Fields> {
  readonly passwords: Passwords
}
