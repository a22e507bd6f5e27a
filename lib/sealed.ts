import { hash } from 'node:crypto'
import { Once } from './base/once.js'
import { AuthError } from './errors.js'
import { derivedKey } from './secrets.js'

/** Loaded with the first value, because most applications seal nothing. */
const jwe = new Once(async () => {
  const [{ CompactEncrypt }, { compactDecrypt }] = await Promise.all([
    import('jose/jwe/compact/encrypt'), import('jose/jwe/compact/decrypt')
  ])
  return { CompactEncrypt, compactDecrypt }
})

interface SealingKey {
  /** The beginning of the key's hash, which each value names. */
  readonly kid: string
  readonly key: Buffer
}

const UNREADABLE = 'Encrypted data cannot be read at the moment; ask the operator of this application.'

const ALGORITHMS = { alg: 'dir', enc: 'A256GCM' } as const

/**
 * Encrypts what a database must not show, and what nobody who writes to the database may exchange:
 * a sealed value is opened for the row that it was sealed for, and for no other use of the secrets.
 */
export class Sealer {
  readonly #newest: SealingKey
  readonly #keys: readonly SealingKey[]

  /**
   * @param secrets the first one seals, all open
   * @param use what is sealed; each use has keys of its own
   */
  constructor (secrets: readonly [string, ...string[]], use: string) {
    this.#newest = sealingKey(secrets[0], use)
    this.#keys = secrets.map(secret => sealingKey(secret, use))
  }

  /**
   * Encrypts a text.
   *
   * @param bind the id of the row that keeps it, which can be read in the result
   * @returns a JWE in the compact serialization (RFC 7516 section 7.1)
   */
  async seal (text: string, bind: string): Promise<string> {
    const { CompactEncrypt } = await jwe.done()
    const { kid, key } = this.#newest
    return new CompactEncrypt(Buffer.from(text)).setProtectedHeader({ ...ALGORITHMS, kid, bind }).encrypt(key)
  }

  /**
   * Decrypts what {@link seal} returned.
   *
   * @param bind the id of the row that it was read from
   * @returns the text, and whether a secret other than the first one sealed it, so that it should
   *   be sealed again
   * @throws AuthError `unavailable` for anything else, with the reason as its cause
   */
  async open (sealed: string, bind: string): Promise<{ text: string, isOld: boolean }> {
    try {
      const { compactDecrypt } = await jwe.done()
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, ({ kid }) => this.#keyOf(kid), {
        keyManagementAlgorithms: [ALGORITHMS.alg],
        contentEncryptionAlgorithms: [ALGORITHMS.enc]
      })
      if (protectedHeader.bind !== bind) throw new Error('the sealed value belongs to another row')
      return { text: Buffer.from(plaintext).toString(), isOld: protectedHeader.kid !== this.#newest.kid }
    } catch (cause) {
      throw new AuthError('unavailable', { message: UNREADABLE, cause })
    }
  }

  #keyOf (kid: string | undefined): Buffer {
    const found = this.#keys.find(key => key.kid === kid)
    if (found === undefined) throw new Error('no secret of dataSecret or SVC_AUTH_DATA_SECRET has sealed the value')
    return found.key
  }
}

function sealingKey (secret: string, use: string): SealingKey {
  const key = derivedKey(secret, `svc-auth sealed ${use}`)
  return { kid: hash('sha256', key, 'base64url').slice(0, 8), key }
}
