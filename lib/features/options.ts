/** The options that are features: objects of classes that the application imports. */
import type { Parts } from '../core/context.js'
import type { PagesOfPart, PartSetup } from '../core/feature.js'
import { isBranded } from '../base/values.js'
import { boolean, mustBe, optional, table } from '../option-checks.js'
import { type GuestOptions, type Guests, checkedGuests } from './guests/guests.js'
import { type Impersonation, type ImpersonationOptions, checkedImpersonation } from './impersonation/options.js'
import { knownBrowsers } from './new-browser/known-browsers.js'
// The entry points: declarations of an application name types by a file that they import.
import type { ApiKeys } from '../api-keys.js'
import type { Connections } from '../connections.js'
import type { OAuthServer } from '../oauth-server.js'
import type { Pages } from '../pages.js'
import type { Passkeys } from '../passkeys.js'
import type { SecondFactor } from '../second-factor.js'

/** Notices that the plugin mails if it is asked to, with `sendMail`. */
export interface NoticeOptions {
  /** Whether users are told of sign-ins from browsers that are not known; default false. */
  newBrowser?: boolean | undefined
}

/** The options of the plugin that are features. */
export interface FeatureOptions {
  /** `new SecondFactor({ issuer })` of `fastify-svc-auth/second-factor`; needs a `dataSecret`. */
  secondFactor?: SecondFactor | undefined
  /**
   * `new Passkeys({ name })` of `fastify-svc-auth/passkeys`; needs `baseUrl` and the package
   * `@simplewebauthn/server`; the code for lost ones needs a `dataSecret` and `sendMail`.
   */
  passkeys?: Passkeys | undefined
  /** `new OAuthServer({ resources })` of `fastify-svc-auth/oauth-server`; needs `baseUrl`. */
  oauthServer?: OAuthServer | undefined
  /** `new ApiKeys({ prefix, scopes })` of `fastify-svc-auth/api-keys`; needs a `SqlAuthStore`. */
  apiKeys?: ApiKeys | undefined
  /** `new Connections()` of `fastify-svc-auth/connections`; needs a `SqlAuthStore`. */
  connections?: Connections | undefined
  /** Who may see the application as another user: `{ allow: ({ actor, user }) => boolean }`. */
  impersonation?: ImpersonationOptions | undefined
  /** Visitors with a user of their own, before they sign in; not with `session.store`. */
  guests?: GuestOptions | undefined
  /** Notices besides those about changes of an account, which `mails` of `local` turns off. */
  notices?: NoticeOptions | undefined
  /** `new Pages({ name })` of `fastify-svc-auth/pages`; pages of the application come first. */
  pages?: Pages | undefined
}

export const FEATURE_OPTIONS = {
  secondFactor: optional(mustBe("new SecondFactor({ issuer: 'Shop' }) of fastify-svc-auth/second-factor",
    (value): value is SecondFactor => isBranded(value, 'SecondFactor')), null),
  passkeys: optional(mustBe("new Passkeys({ name: 'Shop' }) of fastify-svc-auth/passkeys",
    (value): value is Passkeys => isBranded(value, 'Passkeys')), null),
  oauthServer: optional(mustBe('new OAuthServer({ resources }) of fastify-svc-auth/oauth-server',
    (value): value is OAuthServer => isBranded(value, 'OAuthServer')), null),
  apiKeys: optional(mustBe("new ApiKeys({ prefix: 'shop', scopes }) of fastify-svc-auth/api-keys",
    (value): value is ApiKeys => isBranded(value, 'ApiKeys')), null),
  connections: optional(mustBe('new Connections() of fastify-svc-auth/connections',
    (value): value is Connections => isBranded(value, 'Connections')), null),
  impersonation: checkedImpersonation,
  guests: checkedGuests,
  notices: table({ newBrowser: optional(boolean, false) }),
  pages: optional(mustBe("new Pages({ name: 'Shop' }) of fastify-svc-auth/pages; " +
    'pages for the links in mails are an option of the LocalIdentityProvider',
  (value): value is Pages => Object(value).look !== undefined), null)
}

/** Makes the parts of the options that are given. */
export function partsOf (
  { secondFactor, passkeys, oauthServer, apiKeys, connections, impersonation, guests, notices }: {
    secondFactor: SecondFactor | null
    passkeys: Passkeys | null
    oauthServer: OAuthServer | null
    apiKeys: ApiKeys | null
    connections: Connections | null
    impersonation: Impersonation | null
    guests: Guests | null
    notices: Readonly<Record<keyof NoticeOptions, boolean>>
  }, setup: PartSetup
): Readonly<Parts> {
  return Object.freeze({
    secondFactor: secondFactor?.resolve(setup) ?? null,
    passkeys: passkeys?.resolve(setup) ?? null,
    oauthServer: oauthServer?.resolve(setup) ?? null,
    apiKeys: apiKeys?.resolve(setup) ?? null,
    connections: connections?.resolve(setup) ?? null,
    impersonation,
    guests,
    knownBrowsers: notices.newBrowser ? knownBrowsers(setup) : null
  })
}

/** Returns the pages that parts have, where the application has none; those of later parts win. */
export function pagesOf (parts: Readonly<Parts>): PagesOfPart['pages'] {
  return Object.assign({}, ...Object.values(parts).map(part => Object(part).pages).reverse())
}
