import { OptionsError } from '../errors.js'
import { Auth0Provider } from './auth0.js'
import { FacebookProvider } from './facebook.js'
import { GitHubProvider } from './github.js'
import { GoogleProvider } from './google.js'
import { MicrosoftProvider } from './microsoft.js'
import { OidcProvider } from './oidc.js'
import type { ExternalProvider, ProviderOptions } from './provider.js'

type Environment = Readonly<Record<string, string | undefined>>

type MakeProvider = (options: ProviderOptions, settings: Environment) => ExternalProvider

/** The providers by the prefix of their environment variables. */
const PROVIDERS: Readonly<Record<string, MakeProvider>> = {
  GOOGLE: options => new GoogleProvider(options),
  GITHUB: options => new GitHubProvider(options),
  MICROSOFT: (options, settings) => new MicrosoftProvider({
    ...options,
    tenant: settings.MICROSOFT_TENANT || 'common'
  }),
  FACEBOOK: options => new FacebookProvider(options),
  AUTH0: (options, settings) => new Auth0Provider({
    ...options,
    domain: required(settings, 'AUTH0_DOMAIN', 'AUTH0_CLIENT_ID')
  }),
  OIDC: (options, settings) => new OidcProvider({
    ...options,
    name: required(settings, 'OIDC_NAME', 'OIDC_CLIENT_ID'),
    discoveryUrl: required(settings, 'OIDC_DISCOVERY_URL', 'OIDC_CLIENT_ID')
  })
}

/**
 * Creates the providers whose client id and secret are set in the environment: `GOOGLE_CLIENT_ID`
 * and `GOOGLE_CLIENT_SECRET`, `GITHUB_…`, `MICROSOFT_…` (and `MICROSOFT_TENANT`), `FACEBOOK_…`,
 * `AUTH0_…` (and `AUTH0_DOMAIN`), `OIDC_…` (and `OIDC_NAME`, `OIDC_DISCOVERY_URL`). White space
 * around a value is removed; an empty variable counts as not set.
 *
 * @param env variables by name; default `process.env`
 * @returns the providers in this order; an empty list when nothing is set
 * @throws OptionsError naming a variable that is missing although a related one is set
 */
export function providersFromEnv (env: Environment = process.env): ExternalProvider[] {
  const settings = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value?.trim()]))
  return Object.entries(PROVIDERS).flatMap(([prefix, make]) => {
    const [idSetting, secretSetting] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`]
    if (!settings[idSetting] && !settings[secretSetting]) return []
    const clientId = required(settings, idSetting, secretSetting)
    const clientSecret = required(settings, secretSetting, idSetting)
    return [make({ clientId, clientSecret }, settings)]
  })
}

function required (settings: Environment, setting: string, other: string): string {
  const value = settings[setting]
  if (value) return value
  throw new OptionsError(
    `${setting} is not set, but ${other} is; set ${setting} too, or unset ${other} to leave out this provider`)
}
