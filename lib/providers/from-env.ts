import { OptionsError } from '../errors.js'
import { Auth0Provider } from './auth0.js'
import { FacebookProvider } from './facebook.js'
import { GitHubProvider } from './github.js'
import { GoogleProvider } from './google.js'
import { MicrosoftProvider } from './microsoft.js'
import { OidcProvider } from './oidc.js'
import type { ExternalProvider, ProviderOptions } from './provider.js'

type Environment = Readonly<Record<string, string | undefined>>

/** By the prefix of the settings. */
const PROVIDERS: Readonly<Record<string, (options: ProviderOptions, settings: Environment) => ExternalProvider>> = {
  GOOGLE: options => new GoogleProvider(options),
  GITHUB: options => new GitHubProvider(options),
  MICROSOFT: (options, settings) => new MicrosoftProvider({ ...options, tenant: settings.MICROSOFT_TENANT || 'common' }),
  FACEBOOK: options => new FacebookProvider(options),
  AUTH0: (options, settings) => new Auth0Provider({ ...options, domain: required(settings, 'AUTH0_DOMAIN', 'AUTH0_CLIENT_ID') }),
  OIDC: (options, settings) => new OidcProvider({
    ...options,
    name: required(settings, 'OIDC_NAME', 'OIDC_CLIENT_ID'),
    discoveryUrl: required(settings, 'OIDC_DISCOVERY_URL', 'OIDC_CLIENT_ID')
  })
}

/**
 * The providers whose client id and secret are set: `GOOGLE_CLIENT_ID` and `GOOGLE_CLIENT_SECRET`, `GITHUB_…`, `MICROSOFT_…` (and
 * `MICROSOFT_TENANT`), `FACEBOOK_…`, `AUTH0_…` and `AUTH0_DOMAIN`, `OIDC_…`, `OIDC_NAME` and `OIDC_DISCOVERY_URL`. An empty setting is none, and blanks around one do not count.
 *
 * @param env settings by name; default `process.env`
 * @returns them in that order; none when nothing is set
 * @throws OptionsError naming a setting that is missing beside another one
 */
export function providersFromEnv (env: Environment = process.env): ExternalProvider[] {
  const settings = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value?.trim()]))
  return Object.entries(PROVIDERS).flatMap(([prefix, make]) => {
    const [idSetting, secretSetting] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`]
    if (!settings[idSetting] && !settings[secretSetting]) return []
    const options = { clientId: required(settings, idSetting, secretSetting), clientSecret: required(settings, secretSetting, idSetting) }
    return [make(options, settings)]
  })
}

function required (settings: Environment, setting: string, other: string): string {
  const value = settings[setting]
  if (value) return value
  throw new OptionsError(`${setting} is not set, but ${other} is; set ${setting} too, or take ${other} away to go without this provider`)
}
