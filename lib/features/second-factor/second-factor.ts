import type { User } from '../../accounts/account.js'
import type { AuthenticationContext } from '../../authentication.js'
import { brand } from '../../base/values.js'
import type { PartSetup } from '../../core/feature.js'
import { signedText, verifiedText } from '../../core/signed-text.js'
import {
  type Checked, type ChecksOf, boolean, callable, checkedOptions, matching, optional, table, wholeNumber
} from '../../option-checks.js'
import { type Secrets, derivedSecrets, requiredDataSecrets } from '../../secrets.js'
import type { AuthContext, FirstFactor } from '../../core/context.js'

export type { FirstFactor } from '../../core/context.js'

/** Whether the application has authenticator apps and recovery codes. */
export function hasSecondFactor ({ parts }: Pick<AuthContext, 'parts'>): boolean {
  return parts.secondFactor !== null
}

declare module '../../core/context.js' {
  interface Parts {
    readonly secondFactor: ReturnType<SecondFactor['resolve']> | null
  }
}

/** What the signed ID token of a provider says about how the user authenticated there. */
export interface ProviderProof extends AuthenticationContext {
  /** The name of the provider. */
  provider: string
}

/** Options of {@link SecondFactor}. */
export interface SecondFactorOptions {
  /** The name of the application, as authenticator apps show it. */
  issuer: string
  /** How many time steps of thirty seconds a code may be off: 0, 1 or 2; default 1. */
  tolerance?: number | undefined
  /**
   * Whether a user without an authenticator app needs a second factor, as users with one always
   * do; default no. One who has none sets it up before the sign-in is complete. A change of an
   * account asks about each method. Any truthy answer is a yes.
   */
  required?: ((signIn: FirstFactor) => boolean | Promise<boolean>) | undefined
  /**
   * Whether the second factor of a provider stands for one of this application at a sign-in;
   * default never. It is asked about each sign-in with a signed ID token, and stands in for no
   * factor where the account is changed. Trust only providers whose `amr` and `acr` you know.
   */
  trusts?: ((proof: ProviderProof) => boolean | Promise<boolean>) | undefined
  /** Whether `trusts` is asked about connections, too, which customers operate; default false. */
  connections?: boolean | undefined
  /** How long a browser is not asked again, if the user wants that; default: each sign-in asks. */
  trustedBrowser?: {
    /** For how many days: 1 to 365. */
    days: number
  } | undefined
}

const OPTIONS = {
  issuer: matching("the name of the application without a colon, such as 'Shop'", /^[^:]+$/),
  tolerance: optional(wholeNumber(0, 2), 1),
  required: optional(callable<NonNullable<SecondFactorOptions['required']>>(), null),
  trusts: optional(callable<NonNullable<SecondFactorOptions['trusts']>>(), () => false),
  connections: optional(boolean, false),
  trustedBrowser: optional(table({ days: wholeNumber(1, 365) }), null)
} satisfies ChecksOf<SecondFactorOptions>

/**
 * Second factors, for the option `secondFactor` of the plugin: codes of authenticator apps (TOTP,
 * RFC 6238) and recovery codes.
 *
 * @example
 * ```ts
 * import { SecondFactor } from 'fastify-svc-auth/second-factor'
 *
 * const secondFactor = new SecondFactor({ issuer: 'Shop' })
 * await app.register(authPlugin, { local, store, secondFactor })
 * ```
 */
export class SecondFactor {
  static { brand(this, 'SecondFactor') }
  readonly #settings: Checked<typeof OPTIONS>

  /** @throws OptionsError naming the option */
  constructor (options: SecondFactorOptions) {
    this.#settings = checkedOptions('SecondFactor', options, OPTIONS, "{ issuer: 'Shop' }")
  }

  /** @hidden for the plugin */
  resolve ({ dataSecrets, cookieName, hasPages, pathOf }: PartSetup) {
    const secrets = requiredDataSecrets(dataSecrets, 'with secondFactor, because it seals the secrets of users')
    const { trustedBrowser, ...others } = this.#settings
    // svc_session and svc_trusted; the prefix __Host- stays.
    const trustedCookie = `${cookieName.replace(/_?session$/, '')}_trusted`
    const trustedBrowsers = trustedBrowser && new TrustedBrowsers(secrets, trustedCookie, trustedBrowser.days)
    const pages = {
      secondFactor: pathOf(hasPages ? 'pages/factors' : 'local/totp'), step: pathOf('local/second-factor')
    }
    return Object.freeze({ ...others, trustedBrowsers, pages })
  }
}

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
  readonly #keys: Secrets

  /** @param secrets the first one signs, all verify */
  constructor (secrets: Secrets, cookieName: string, days: number) {
    this.#keys = derivedSecrets(secrets, 'svc-auth trusted browser')
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
    const value = await signedText(JSON.stringify([entry, ...others].slice(0, MAX_USERS)), this.#keys[0])
    return { value, maxAge, replacesSeveral: known.length > 1 }
  }

  async #entriesOf (cookies: readonly string[]): Promise<ReadonlyArray<readonly Entry[]>> {
    const texts = await Promise.all(cookies.map(async cookie => verifiedText(cookie, this.#keys)))
    // Only this class signs with these keys.
    return texts.flatMap(text => text === null ? [] : [JSON.parse(text)])
  }
}
