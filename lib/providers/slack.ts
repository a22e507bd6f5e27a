import { isText } from '../claims.js'
import { matching, optional } from '../option-checks.js'
import { failure, unacceptable } from './failures.js'
import { OidcProvider, type OidcProfile } from './oidc.js'
import { preset } from './provider-options.js'
import type { ProviderOptions, UncheckedIdentity } from './provider.js'

/** Options of a {@link SlackProvider}. */
export interface SlackProviderOptions extends ProviderOptions {
  /** The id of the only workspace to admit, such as `T0123ABCD`. */
  team?: string | undefined
}

/**
 * Signs users in with Slack. Adds the claim `team_id`, the workspace. The e-mail address counts as
 * verified with the option `team` only: owners of workspaces may set those of their members.
 */
export class SlackProvider extends OidcProvider {
  /** Nothing says that Slack heeds `max_age`. */
  override readonly provesAuthTime = false
  readonly #team: string | undefined

  /** @throws OptionsError naming the option */
  constructor ({ team, ...options }: SlackProviderOptions) {
    optional(matching('the id of a workspace, such as T0123ABCD', /^T[A-Z0-9]+$/))(team, 'slack: team')
    super(preset({
      name: 'slack',
      discoveryUrl: 'https://slack.com/.well-known/openid-configuration',
      clientAuthentication: 'client_secret_post' as const,
      // Slack answers a code_verifier with internal_error. The nonce binds the code.
      withoutPkce: true
    }, {}, {
      ...options, authorizationParams: { ...options.authorizationParams, ...(team !== undefined && { team }) }
    }))
    this.#team = team
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    const { sub, 'https://slack.com/team_id': team } = idToken
    if (!isText(team)) throw unacceptable('the ID token names no workspace')
    const isOwn = team === this.#team
    // The parameter team only preselects a workspace.
    if (this.#team !== undefined && !isOwn) {
      throw failure('access_denied', `the user does not belong to the workspace ${this.#team}`, { isEveryday: true })
    }
    const { claims: { email_verified: verified, ...claims }, emailVerified } = super.identityOf(profile, idToken)
    return {
      // Slack promises unique ids of users for each workspace alone.
      subject: `${team}.${sub}`,
      claims: { ...claims, ...(isOwn && { email_verified: verified }), sub, team_id: team },
      emailVerified: isOwn && emailVerified
    }
  }
}
