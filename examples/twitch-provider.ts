import { OidcProvider, type OidcProfile, type ProviderOptions, type UncheckedIdentity } from 'fastify-svc-auth'

const CLAIMS = { email: null, email_verified: null, preferred_username: null, picture: null }

/** Sign-in with Twitch: OpenID Connect, but scopes that request no claims. */
export class TwitchProvider extends OidcProvider {
  constructor (options: ProviderOptions) {
    super({
      name: 'twitch',
      discoveryUrl: 'https://id.twitch.tv/oauth2/.well-known/openid-configuration',
      ...options,
      scopes: options.scopes ?? ['openid', 'user:read:email'],
      authorizationParams: { claims: JSON.stringify({ id_token: CLAIMS }), ...options.authorizationParams }
    })
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile, idToken)
    return { ...identity, claims: { ...identity.claims, name: profile.preferred_username } }
  }
}
