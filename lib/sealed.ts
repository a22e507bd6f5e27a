import { hash } from 'node:crypto'
import { AuthError } from './errors.js'
import { type Secrets, derivedKey } from './secrets.js'

const UNREADABLE = 'Encrypted data cannot be read at the moment; ask the operator of this application.'

const ALGORITHMS = { alg: 'dir', enc: 'A256GCM' } as const

/**
 * Encrypts what a database must not show, and what nobody who writes to the database may exchange:
 * a sealed value is opened for the row that it was sealed for, and for no other use of the secrets.
 */
export class Sealer {
  readonly #newest: Buffer
  readonly #keys: readonly Buffer[]

  /** The first of the secrets seals, all open. Each use has keys of its own. */
  constructor ([newest, ...older]: Secrets, use: string) {
    const keyOf = (secret: string): Buffer => derivedKey(secret, `svc-auth sealed ${use}`)
    this.#newest = keyOf(newest)
    this.#keys = [this.#newest, ...older.map(keyOf)]
  }

  /** Encrypts to a compact JWE (RFC 7516 section 7.1), which shows `bind`, the id of the row. */
  async seal (text: string, bind: string): Promise<string> {
    // Loaded with the first value, because most applications seal nothing.
    const { CompactEncrypt } = await import('jose/jwe/compact/encrypt')
    const header = { ...ALGORITHMS, kid: idOf(this.#newest), bind }
    return new CompactEncrypt(Buffer.from(text)).setProtectedHeader(header).encrypt(this.#newest)
  }

  /**
   * Decrypts what {@link seal} returned.
   *
   * @returns `isOld`: another secret than the first sealed it; it should be sealed again
   * @throws AuthError `unavailable` for anything else, with the reason as its cause
   */
  async open (sealed: string, bind: string): Promise<{ text: string, isOld: boolean }> {
    try {
      const { compactDecrypt } = await import('jose/jwe/compact/decrypt')
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, ({ kid }) => this.#keyOf(kid), {
        keyManagementAlgorithms: [ALGORITHMS.alg],
        contentEncryptionAlgorithms: [ALGORITHMS.enc]
      })
      if (protectedHeader.bind !== bind) throw new Error('the sealed value belongs to another row')
      return { text: Buffer.from(plaintext).toString(), isOld: protectedHeader.kid !== idOf(this.#newest) }
    } catch (cause) {
      throw new AuthError('unavailable', { message: UNREADABLE, cause })
    }
  }

  #keyOf (kid: string | undefined): Buffer {
    const found = this.#keys.find(key => idOf(key) === kid)
    if (found !== undefined) return found
    throw new Error('no secret of dataSecret or SVC_AUTH_DATA_SECRET has sealed the value')
  }
}

function idOf (key: Buffer): string {
  return hash('sha256', key, 'base64url').slice(0, 8)
}
