const USUAL_NAMES: ReadonlyMap<string, string> = new Map([
  ['google', 'Google'],
  ['github', 'GitHub'],
  ['microsoft', 'Microsoft'],
  ['facebook', 'Facebook'],
  ['auth0', 'Auth0'],
  ['local', 'E-mail and password']
])

/** What people call a provider; one of the application's own by the name that it was given. */
export function usualName (provider: string): string {
  return USUAL_NAMES.get(provider) ?? provider
}
