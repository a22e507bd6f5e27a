import { OAuth2Provider, type ProviderApi, type ProviderOptions, type UncheckedIdentity } from 'fastify-svc-auth'

/** Sign-in with X: OAuth 2.0 without OpenID Connect. */
export class XProvider extends OAuth2Provider {
  constructor (options: ProviderOptions) {
    super({
      name: 'x',
      authorizationEndpoint: 'https://x.com/i/oauth2/authorize',
      tokenEndpoint: 'https://api.x.com/2/oauth2/token',
      clientAuthentication: 'client_secret_basic',
      ...options,
      scopes: options.scopes ?? ['tweet.read', 'users.read', 'users.email']
    })
  }

  protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
    const { data } = await api.get('https://api.x.com/2/users/me?user.fields=confirmed_email,profile_image_url')
    const { id, name, username: login, confirmed_email: email, profile_image_url: picture } = Object(data)
    // X returns the address only once the user has confirmed it.
    return { subject: id, claims: { name, login, email, picture }, emailVerified: email !== undefined }
  }
}
