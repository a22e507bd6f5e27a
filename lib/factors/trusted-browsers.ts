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
  /** How long a browser is trusted. */
  readonly days: number
  readonly #keys: TokenKeys

  /** @param secrets the first one signs, all verify */
  constructor (secrets: Secrets, cookieName: string, days: number) {
    this.#keys = keysOfSecrets(derivedSecrets(secrets, 'svc-auth trusted browser'))
    this.cookieName = cookieName
    this.days = days
  }

  /** Whether a browser is trusted that sends these cookies: one for each domain and path. */
  async trusts (cookies: readonly string[], { userId, generation }: TrustedUser): Promise<boolean> {
    const entries = (await this.#entriesOf(cookies)).flat()
    return entries.some(entry => entry[0] === userId && entry[1] === generation && entry[2] > Date.now())
  }

  /** Returns the browser's new cookie, its seconds, and whether it takes the place of several. */
  async trust (
    cookies: readonly string[], { userId, generation }: TrustedUser
  ): Promise<{ value: string, maxAge: number, replacesSeveral: boolean }> {
    const maxAge = this.days * 24 * 60 * 60
    const known = await this.#entriesOf(cookies)
    const others = known.flat().filter(entry => entry[0] !== userId).sort((one, other) => other[2] - one[2])
    const entry: Entry = [userId, generation, Date.now() + maxAge * 1000]
    const { signedText } = await import('../tokens/jwt.js')
    const value = await signedText(JSON.stringify([entry, ...others].slice(0, MAX_USERS)), this.#keys.signing.key)
    return { value, maxAge, replacesSeveral: known.length > 1 }
  }

  async #entriesOf (cookies: readonly string[]): Promise<ReadonlyArray<readonly Entry[]>> {
    const { verifiedText } = await import('../tokens/jwt.js')
    const texts = await Promise.all(cookies.map(async cookie => verifiedText(cookie, this.#keys.verifying)))
    // Only this class signs with these keys.
    return texts.flatMap(text => text === null ? [] : [JSON.parse(text)])
  }
}
