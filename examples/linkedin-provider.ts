import { OAuth2Provider, type ProviderApi, type ProviderOptions, type UncheckedIdentity } from 'fastify-svc-auth'

/** Sign-in with LinkedIn, which refuses PKCE and puts no nonce into its ID tokens. */
export class LinkedInProvider extends OAuth2Provider {
  constructor (options: ProviderOptions) {
    super({
      name: 'linkedin',
      authorizationEndpoint: 'https://www.linkedin.com/oauth/v2/authorization',
      tokenEndpoint: 'https://www.linkedin.com/oauth/v2/accessToken',
      withoutPkce: true,
      ...options,
      scopes: options.scopes ?? ['openid', 'profile', 'email']
    })
  }

  protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
    const { sub, name, email, email_verified: verified, picture } = await api.get('https://api.linkedin.com/v2/userinfo')
    return { subject: sub, claims: { name, email, picture }, emailVerified: verified === true }
  }
}
