import { OAuth2Provider, type ProviderApi, type ProviderOptions, type UncheckedIdentity } from 'fastify-svc-auth'

/** Sign-in with Discord: OAuth 2.0 without OpenID Connect. */
export class DiscordProvider extends OAuth2Provider {
  constructor (options: ProviderOptions) {
    super({
      name: 'discord',
      authorizationEndpoint: 'https://discord.com/oauth2/authorize',
      tokenEndpoint: 'https://discord.com/api/oauth2/token',
      ...options,
      scopes: options.scopes ?? ['identify', 'email']
    })
  }

  /** Who the access token speaks for. */
  protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
    const { id, username, email, verified, avatar } = await api.get('https://discord.com/api/users/@me')
    return {
      subject: id,
      claims: { name: username, email, picture: avatar && `https://cdn.discordapp.com/avatars/${id}/${avatar}.png` },
      emailVerified: verified === true
    }
  }
}
