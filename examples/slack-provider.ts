import { AuthError, OidcProvider, type OidcProfile, type ProviderOptions, type UncheckedIdentity } from 'fastify-svc-auth'

/** Sign-in with Slack for the members of one workspace, in which ids and addresses are theirs. */
export class SlackProvider extends OidcProvider {
  override readonly provesAuthTime = false
  readonly #team: string

  constructor ({ team, ...options }: ProviderOptions & { team: string }) {
    super({
      name: 'slack',
      discoveryUrl: 'https://slack.com/.well-known/openid-configuration',
      clientAuthentication: 'client_secret_post',
      withoutPkce: true,
      ...options,
      authorizationParams: { ...options.authorizationParams, team }
    })
    this.#team = team
  }

  protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
    // The parameter only preselects a workspace.
    if (idToken['https://slack.com/team_id'] !== this.#team) throw new AuthError('not_allowed')
    return super.identityOf(profile, idToken)
  }
}
