import { isText, isVerified } from '../claims.js'
import { issued, preset } from './provider-options.js'
import { checkedIdentity, parsedJson } from './identity.js'
import { OidcProvider, type OidcProfile, signingKey, valueOf } from './oidc.js'
import type { Authentication, AuthorizationResponse, ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of an {@link AppleProvider}. Functions are called each time, for a new key. */
export interface AppleProviderOptions extends Omit<ProviderOptions, 'clientSecret'> {
  /** The id of the team that the key belongs to. */
  teamId: string
  /** The id of the key. */
  keyId: string | (() => string)
  /** The text of the file `AuthKey_….p8`, with line breaks or `\n`. */
  privateKey: string | (() => string)
}

const ISSUER = 'https://appleid.apple.com'
const MUST = 'apple: privateKey must be the text of AuthKey_….p8, an EC P-256 private key in PEM'

/**
 * Signs users in with Apple. Adds the claim `is_private_email`. Apple tells a name once, with the
 * first consent of a user, and does not sign it.
 */
export class AppleProvider extends OidcProvider {
  /** Apple does not document `max_age`. */
  override readonly provesAuthTime = false

  /** @throws OptionsError naming the option */
  constructor ({ teamId, keyId, privateKey, ...options }: AppleProviderOptions) {
    const present = () => ({
      kid: issued('id of the key')(valueOf(keyId), 'apple: keyId'),
      key: signingKey(String(valueOf(privateKey)).replaceAll('\\n', '\n'), 'ES256', MUST)
    })
    present()
    issued('id of the team')(teamId, 'apple: teamId')
    super(preset({
      name: 'apple',
      backChannelLogout: false,
      discoveryUrl: `${ISSUER}/.well-known/openid-configuration`,
      responseMode: 'form_post' as const,
      clientAuthentication: 'client_secret_post' as const,
      // Apple accepts one for six months: one that leaks expires in ten minutes.
      async clientSecret () {
        const { SignJWT } = await import('jose/jwt/sign')
        const { kid, key } = present()
        return new SignJWT().setProtectedHeader({ alg: 'ES256', kid }).setIssuer(teamId).setSubject(options.clientId)
          .setAudience(ISSUER).setIssuedAt().setExpirationTime('10m').sign(key)
      }
    }, { scopes: ['openid', 'name', 'email'] }, options))
  }

  override async authenticate (response: AuthorizationResponse): Promise<Authentication> {
    const { identity, ...others } = await super.authenticate(response)
    const claims = { ...identity.claims, name: nameIn(response.parameters.get('user')) }
    return { ...others, identity: checkedIdentity({ ...identity, claims }) }
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const identity = super.identityOf(profile, idToken)
    const { is_private_email: isPrivate = null } = profile
    return { ...identity, claims: { ...identity.claims, is_private_email: isPrivate && isVerified(isPrivate) } }
  }
}

/** Reads the name in the field `user`. The browser sends it, so the e-mail there proves nothing. */
function nameIn (user: string | null): string {
  const { firstName, lastName } = Object(Object(parsedJson(user ?? '')).name)
  return [firstName, lastName].filter(isText).join(' ').slice(0, 1000)
}
