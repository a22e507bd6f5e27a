import { Signer } from '@fastify/cookie'
import { BoundedMap } from '../base/bounded-map.js'

/** Sessions with requests under way, at most: the signature of one more is computed twice, and after a rotation it has to sign in again. */
const MAX_REMEMBERED = 10_000

/**
 * Signs session cookies with the first secret and knows those signed with any of them.
 *
 * @fastify/session compares the cookie of a request with a new signature of its id, and clears the cookie when they differ: after a
 * rotation the first page view would sign everybody out. So a session keeps the signature that its cookie came with, until a sign-in
 * gives it a new id. That one is verified with each request, and need not be computed once more.
 */
export class RotatingSigner {
  readonly #signer: Signer
  readonly #cookieById = new BoundedMap<string>(MAX_REMEMBERED)

  constructor (secrets: string[], algorithm: string | undefined) {
    this.#signer = new Signer(secrets, algorithm)
  }

  sign (id: string): string {
    return this.#cookieById.get(id) ?? this.#signer.sign(id)
  }

  unsign (cookie: string): ReturnType<Signer['unsign']> {
    const unsigned = this.#signer.unsign(cookie)
    if (unsigned.valid && (unsigned.renew || !this.#cookieById.has(unsigned.value))) this.#cookieById.set(unsigned.value, cookie)
    return unsigned
  }
}
