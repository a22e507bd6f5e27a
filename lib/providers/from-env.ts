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
const PROVIDERS: Readonly<Record<string, (options: ProviderOptions, env: Environment) => ExternalProvider>> = {
  GOOGLE: options => new GoogleProvider(options),
  GITHUB: options => new GitHubProvider(options),
  MICROSOFT: (options, env) => new MicrosoftProvider({ ...options, tenant: env.MICROSOFT_TENANT || 'common' }),
  FACEBOOK: options => new FacebookProvider(options),
  AUTH0: (options, env) => new Auth0Provider({ ...options, domain: required(env, 'AUTH0_DOMAIN', 'AUTH0_CLIENT_ID') }),
  OIDC: (options, env) => new OidcProvider({
    ...options,
    name: required(env, 'OIDC_NAME', 'OIDC_CLIENT_ID'),
    discoveryUrl: required(env, 'OIDC_DISCOVERY_URL', 'OIDC_CLIENT_ID')
  })
}

/**
 * The providers whose client id and secret are set: `GOOGLE_CLIENT_ID` and `GOOGLE_CLIENT_SECRET`, `GITHUB_…`, `MICROSOFT_…` (and
 * `MICROSOFT_TENANT`), `FACEBOOK_…`, `AUTH0_…` and `AUTH0_DOMAIN`, `OIDC_…`, `OIDC_NAME` and `OIDC_DISCOVERY_URL`. An empty setting is none.
 *
 * @throws OptionsError naming a setting that is missing beside another one
 */
export function providersFromEnv (env: Environment = process.env): ExternalProvider[] {
  return Object.entries(PROVIDERS).flatMap(([prefix, make]) => {
    const [idSetting, secretSetting] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`]
    if (!env[idSetting] && !env[secretSetting]) return []
    const options = { clientId: required(env, idSetting, secretSetting), clientSecret: required(env, secretSetting, idSetting) }
    return [make(options, env)]
  })
}

function required (env: Environment, setting: string, other: string): string {
  const value = env[setting]
  if (value) return value
  throw new OptionsError(`${setting} is not set, but ${other} is; set both, or neither to go without this provider`)
}
