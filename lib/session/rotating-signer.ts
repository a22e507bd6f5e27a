import { Signer } from '@fastify/cookie'
import { BoundedMap } from '../base/bounded-map.js'
import { isEqual } from '../secrets.js'

/**
 * The maximum number of remembered cookies. For a session that is not remembered the signature is
 * computed with each request, and after a rotation its user signs in again.
 */
const MAX_REMEMBERED = 10_000

/**
 * Signs session cookies with the first secret and accepts those signed with any of the secrets.
 *
 * @fastify/session compares the cookie of a request with a new signature of its id and clears the
 * cookie when they differ, so a rotation of secrets would sign all users out. Therefore a session
 * keeps the signature of its cookie until a sign-in gives it a new id. A signature that was
 * verified is not computed again: the cookies of later requests are compared with it.
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
    const id = cookie.slice(0, cookie.lastIndexOf('.'))
    const verified = this.#cookieById.get(id)
    if (verified !== undefined && isEqual(verified, cookie)) return { valid: true, renew: false, value: id }
    const unsigned = this.#signer.unsign(cookie)
    if (unsigned.valid && (unsigned.renew || verified === undefined)) this.#cookieById.set(id, cookie)
    return unsigned
  }
}
