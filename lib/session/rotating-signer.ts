import { Signer } from '@fastify/cookie'
import { BoundedMap } from '../base/bounded-map.js'

/**
 * The maximum number of remembered cookies. For a session that is not remembered the signature is
 * computed twice, and after a rotation its user signs in again.
 */
const MAX_REMEMBERED = 10_000

/**
 * Signs session cookies with the first secret and accepts those signed with any of the secrets.
 *
 * @fastify/session compares the cookie of a request with a new signature of its id and clears the
 * cookie when they differ, so a rotation of secrets would sign all users out. Therefore a session
 * keeps the signature of its cookie until a sign-in gives it a new id. Each request verifies that
 * signature, so it need not be computed again.
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
    const { valid, renew, value } = unsigned
    if (valid && (renew || !this.#cookieById.has(value))) this.#cookieById.set(value, cookie)
    return unsigned
  }
}
