import type { User } from '../accounts/account.js'
import { type Secrets, derivedSecrets } from '../secrets.js'
import { type TokenKeys, keysOfSecrets } from '../tokens/token-keys.js'

/** A user whom a browser is trusted for: what ends all their sessions ends this too. */
type TrustedUser = Pick<User, 'userId' | 'generation'>

/** What the cookie of a browser says of one user; the last one is in milliseconds. */
type Entry = readonly [userId: string, generation: number, expiresAt: number]

/** How many users one browser is trusted for; the oldest goes. */
const MAX_USERS = 3

/**
 * Signs and verifies the cookie of browsers that are not asked for a second factor at each sign-in.
 * It spares the question at a sign-in alone: what an open session may not do, the browser may not
 * do either.
 */
export class TrustedBrowsers {
  /** The name of the cookie. */
  readonly cookieName: string
  /** Seconds that the cookie lives; null where no browser is trusted. */
  readonly maxAge: number | null
  readonly #keys: TokenKeys

  /** @param secrets the first one signs, all verify */
  constructor (secrets: Secrets, cookieName: string, days: number | null) {
    this.#keys = keysOfSecrets(derivedSecrets(secrets, 'svc-auth trusted browser'))
    this.cookieName = cookieName
    this.maxAge = days === null ? null : days * 24 * 60 * 60
  }

  /** Whether a browser with a cookie is trusted for a user. */
  async trusts (cookie: string | undefined, { userId, generation = 0 }: TrustedUser): Promise<boolean> {
    if (this.maxAge === null) return false
    const entries = await this.#entriesOf(cookie)
    return entries.some(entry => entry[0] === userId && entry[1] === generation && entry[2] > Date.now())
  }

  /**
   * Returns the cookie that a browser has from now on, and the seconds that it lives; null where no
   * browser is trusted.
   */
  async trust (
    cookie: string | undefined, { userId, generation = 0 }: TrustedUser
  ): Promise<{ value: string, maxAge: number } | null> {
    const { maxAge } = this
    if (maxAge === null) return null
    const others = (await this.#entriesOf(cookie)).filter(entry => entry[0] !== userId)
    const entry: Entry = [userId, generation, Date.now() + maxAge * 1000]
    const { signedText } = await import('../tokens/jwt.js')
    const value = await signedText(JSON.stringify([entry, ...others].slice(0, MAX_USERS)), this.#keys.signing.key)
    return { value, maxAge }
  }

  async #entriesOf (cookie: string | undefined): Promise<readonly Entry[]> {
    const { verifiedText } = await import('../tokens/jwt.js')
    const text = cookie === undefined ? null : await verifiedText(cookie, this.#keys.verifying)
    // Only this class signs with these keys.
    return text === null ? [] : JSON.parse(text)
  }
}
