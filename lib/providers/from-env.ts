import { OptionsError } from '../errors.js'
import { secureUrl } from '../core/fetching.js'
import { type Environment, settingOf } from '../secrets.js'
import { AppleProvider } from './apple.js'
import { Auth0Provider } from './auth0.js'
import { FacebookProvider } from './facebook.js'
import { GitHubProvider } from './github.js'
import { GoogleProvider } from './google.js'
import { MicrosoftProvider } from './microsoft.js'
import { OidcProvider } from './oidc.js'
import type { ExternalProvider, ProviderOptions } from './provider.js'

type MakeProvider = (options: ProviderOptions, env: Environment) => ExternalProvider

/** The providers by the prefix of their environment variables. */
const PROVIDERS: Readonly<Record<string, MakeProvider>> = {
  GOOGLE: options => new GoogleProvider(options),
  GITHUB: options => new GitHubProvider(options),
  MICROSOFT: (options, env) => new MicrosoftProvider({ ...options, tenant: settingOf('MICROSOFT_TENANT', env) }),
  FACEBOOK: options => new FacebookProvider(options),
  AUTH0: (options, env) => new Auth0Provider({
    ...options,
    domain: required(env, 'AUTH0_DOMAIN', 'AUTH0_CLIENT_ID')
  }),
  GITLAB: discovered('GITLAB', 'https://gitlab.com'),
  KEYCLOAK: discovered('KEYCLOAK'),
  OKTA: discovered('OKTA'),
  COGNITO: discovered('COGNITO'),
  OIDC: (options, env) => new OidcProvider({
    ...options,
    name: required(env, 'OIDC_NAME', 'OIDC_CLIENT_ID'),
    discoveryUrl: required(env, 'OIDC_DISCOVERY_URL', 'OIDC_CLIENT_ID')
  })
}

/**
 * Creates the providers whose client id and secret are set in the environment: `GOOGLE_CLIENT_ID`
 * and `GOOGLE_CLIENT_SECRET`, `GITHUB_…`, `MICROSOFT_…` (and `MICROSOFT_TENANT`), `FACEBOOK_…`,
 * `AUTH0_…` (and `AUTH0_DOMAIN`), `GITLAB_…` (and `GITLAB_ISSUER`, for a host of your own),
 * `KEYCLOAK_…`, `OKTA_…`, `COGNITO_…` (each with its `…_ISSUER`), `OIDC_…` (and `OIDC_NAME`,
 * `OIDC_DISCOVERY_URL`), in this order. Last is Apple, with `APPLE_CLIENT_ID`, `APPLE_TEAM_ID`,
 * `APPLE_KEY_ID` and `APPLE_PRIVATE_KEY`. White space around a value is removed; an empty variable
 * counts as not set.
 *
 * @param env variables by name; default `process.env`
 * @throws OptionsError naming a variable that is missing although a related one is set, or one with
 *   quotes, blanks or control characters
 */
export function providersFromEnv (env: Environment = process.env): ExternalProvider[] {
  return [...Object.entries(PROVIDERS).flatMap(([prefix, make]) => {
    const [idSetting, secretSetting] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`]
    if ((settingOf(idSetting, env) ?? settingOf(secretSetting, env)) === undefined) return []
    const clientId = required(env, idSetting, secretSetting)
    const clientSecret = required(env, secretSetting, idSetting)
    return [make({ clientId, clientSecret }, env)]
  }), ...appleIn(env)]
}

/** Apple has a key in place of a secret; its blanks and line breaks are those of PEM. */
function appleIn ({ APPLE_PRIVATE_KEY: pem = '', ...env }: Environment): ExternalProvider[] {
  const settings = { ...env, APPLE_PRIVATE_KEY: pem.trim() && 'set' }
  const names = ['APPLE_CLIENT_ID', 'APPLE_TEAM_ID', 'APPLE_KEY_ID', 'APPLE_PRIVATE_KEY']
  const present = names.find(name => settingOf(name, settings) !== undefined)
  if (present === undefined) return []
  const [clientId = '', teamId = '', keyId = ''] = names.map(name => required(settings, name, present))
  return [new AppleProvider({ clientId, teamId, keyId, privateKey: pem })]
}

/** A provider that takes nothing but its discovery document, which is below `{prefix}_ISSUER`. */
function discovered (prefix: string, byDefault?: string): MakeProvider {
  return (options, env) => {
    const setting = `${prefix}_ISSUER`
    const issuer = settingOf(setting, env) ?? byDefault ?? required(env, setting, `${prefix}_CLIENT_ID`)
    const discoveryUrl = `${secureUrl(false)(issuer, setting).replace(/\/$/, '')}/.well-known/openid-configuration`
    return new OidcProvider({ ...options, name: prefix.toLowerCase(), discoveryUrl })
  }
}

function required (env: Environment, setting: string, other: string): string {
  const value = settingOf(setting, env)
  if (value !== undefined) return value
  throw new OptionsError(
    `${setting} is not set, but ${other} is; set ${setting} too, or unset ${other} to leave out this provider`)
}
