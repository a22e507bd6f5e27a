import { isText } from '../claims.js'
import { unacceptable } from './failures.js'
import { OidcProvider, type OidcProfile } from './oidc.js'
import { preset } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

const TEAM = 'https://slack.com/team_id'

/** Signs users in with Slack. Adds the claim `team_id`, the workspace. */
export class SlackProvider extends OidcProvider {
  /** Nothing says that Slack heeds `max_age`. */
  override readonly provesAuthTime = false

  /** @throws OptionsError naming the option */
  constructor (options: ProviderOptions) {
    super(preset({
      name: 'slack',
      discoveryUrl: 'https://slack.com/.well-known/openid-configuration',
      clientAuthentication: 'client_secret_post' as const,
      // Slack answers a code_verifier with internal_error; the nonce binds the code to the browser.
      withoutPkce: true
    }, {}, options))
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const { claims, emailVerified } = super.identityOf(profile, idToken)
    const { sub, [TEAM]: team } = idToken
    if (!isText(team)) throw unacceptable(`the ID token has no ${TEAM}`)
    // Slack promises unique ids of users for each workspace alone.
    return { subject: `${team}.${sub}`, claims: { ...claims, sub, team_id: team }, emailVerified }
  }
}
