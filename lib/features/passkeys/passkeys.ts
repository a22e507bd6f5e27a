import { brand } from '../../base/values.js'
import { isText } from '../../claims.js'
import { RELATED_ORIGINS, Site } from '../../core/site.js'
import { withParameter } from '../../core/redirects.js'
import type { PartSetup } from '../../core/feature.js'
import { OptionsError } from '../../errors.js'
import { type Checked, type ChecksOf, boolean, checkedOptions, listOf, mustBe, optional } from '../../option-checks.js'
import { PasskeyCeremonies } from './ceremonies.js'
import { PASSKEY_SCRIPT_VERSION } from './script.js'

/** Options of {@link Passkeys}. */
export interface PasskeysOptions {
  /** The name of the application, as authenticators show it. */
  name: string
  /**
   * The domain that the passkeys are for; default the host of `baseUrl`. With a parent of it, such
   * as `app.example` for `https://accounts.app.example`, they work on all hosts of that domain. A
   * change loses all passkeys.
   */
  rpId?: string | undefined
  /**
   * Origins of other domains whose pages may use the passkeys too, such as `https://app.test`: each
   * one of `trustedOrigins`. Browsers read them at `/.well-known/webauthn` of `rpId`, and need not
   * take more than five.
   *
   * @see WebAuthn Level 3 section 5.11 (related origin requests)
   */
  relatedOrigins?: readonly string[] | undefined
  /**
   * Whether the browser makes a passkey by itself after a sign-in with a saved password on the
   * plugin's page, where it supports that, for a user without a factor. Default false.
   *
   * @see WebAuthn Level 3 section 5.1.3 (conditional mediation)
   */
  createOnSignIn?: boolean | undefined
}

declare module '../../core/context.js' {
  interface Parts {
    readonly passkeys: ReturnType<Passkeys['resolve']> | null
  }
}

const OPTIONS = {
  name: mustBe("the name of the application, such as 'Shop'", isText),
  rpId: optional(mustBe('a domain, such as app.example', isText), null),
  relatedOrigins: optional(listOf("a list of origins, such as ['https://app.test']", isText), []),
  createOnSignIn: optional(boolean, false)
} satisfies ChecksOf<PasskeysOptions>

/**
 * Passkeys as sign-in method and as second factor, for the option `passkeys` of the plugin. They
 * need the package `@simplewebauthn/server`.
 *
 * @example
 * ```ts
 * import { Passkeys } from 'fastify-svc-auth/passkeys'
 *
 * const passkeys = new Passkeys({ name: 'Shop' })
 * await app.register(authPlugin, { baseUrl: 'https://app.example', local, store, passkeys })
 * ```
 */
export class Passkeys {
  static { brand(this, 'Passkeys') }
  readonly #options: Checked<typeof OPTIONS>

  /** @throws OptionsError naming the option */
  constructor (options: PasskeysOptions) {
    this.#options = checkedOptions('Passkeys', options, OPTIONS, "{ name: 'Shop' }")
  }

  /** @hidden for the plugin */
  ceremonies ({ baseUrl, trustedOrigins }: Pick<Site, 'baseUrl' | 'trustedOrigins'>): PasskeyCeremonies {
    if (baseUrl === null) {
      throw new OptionsError('baseUrl is required with passkeys, because a passkey is for one domain; ' +
        'set it to the public URL of the application, such as https://app.example')
    }
    const { protocol, hostname, origin } = new URL(baseUrl)
    const isLocal = /^(?:.+\.)?localhost$/.test(hostname)
    if (!isLocal && (protocol !== 'https:' || /^[\d.]+$|:/.test(hostname))) {
      throw new OptionsError('baseUrl must be an https: URL with a host name, or on this machine http://localhost, ' +
        'with passkeys: browsers have none for http: and for IP addresses')
    }
    const { name, relatedOrigins, createOnSignIn } = this.#options
    const rpId = this.#options.rpId ?? hostname
    // Browsers know all domains that are of no single owner, such as co.uk, and refuse them.
    if (rpId !== hostname && !(hostname.endsWith(`.${rpId}`) && rpId.includes('.'))) {
      throw new OptionsError(`Passkeys: rpId must be the host of baseUrl, ${hostname}, ` +
        'or a domain that this host is in, such as app.example for accounts.app.example')
    }
    const unknown = relatedOrigins.find(related => !trustedOrigins.has(related))
    if (unknown !== undefined) {
      throw new OptionsError(`Passkeys: relatedOrigins has ${unknown}, which must be in trustedOrigins as well: ` +
        'its pages may sign users in')
    }
    return new PasskeyCeremonies({ name, rpId, origin, relatedOrigins, createOnSignIn })
  }

  /** @hidden for the plugin */
  resolve ({ site, dataSecrets, hasPages, factorPage, pathOf, isAtRoot, assertAtRoot }: PartSetup) {
    const ceremonies = this.ceremonies(site)
    if (ceremonies.hasRelatedOrigins) assertAtRoot('relatedOrigins of Passkeys', RELATED_ORIGINS)
    const managing = factorPage ?? (hasPages ? pathOf('pages/factors') : null)
    return Object.freeze({
      ceremonies,
      /** Whether the sign-in page lets browsers make passkeys by themselves. */
      createsOnPages: hasPages && ceremonies.relyingParty.createOnSignIn,
      /** Where the script asks for the options of a ceremony. */
      optionsPath: pathOf('local/passkeys/options'),
      scriptPath: withParameter(pathOf('local/passkeys/script.js'), 'v', PASSKEY_SCRIPT_VERSION),
      /** Where users add and remove passkeys, for password managers. */
      managePage: isAtRoot ? managing : null,
      pages: {
        ...(hasPages && { secondFactor: pathOf('pages/factors') }),
        // A sign-in that waits is sealed.
        ...(dataSecrets !== null && { step: pathOf('local/second-factor') })
      }
    })
  }
}
