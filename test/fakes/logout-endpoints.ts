/**
 * Where browsers sign out at a provider, as its documentation says: what it shows, or where it redirects to. The URLs that are registered
 * in its console are compared as the provider compares them.
 */
import { decodeJwt } from 'jose'

export interface RegisteredClient {
  clientId: string
  /** Where the provider may redirect to after a sign-out. */
  signOutUrls: readonly string[]
}

/** What the user sees, or the `Location` of a redirect. */
export type LogoutAnswer = { shows: string } | { location: string }

type LogoutEndpoint = (request: URL, client: RegisteredClient) => LogoutAnswer

function back (to: string, state: string | null): LogoutAnswer {
  const url = new URL(to)
  if (state !== null) url.searchParams.set('state', state)
  return { location: url.href }
}

/** Keycloak takes no page to return to without the client, and asks the user without an ID token. */
export const keycloak: LogoutEndpoint = ({ searchParams: query }, { clientId, signOutUrls }) => {
  const [idToken, redirectUri] = [query.get('id_token_hint'), query.get('post_logout_redirect_uri') ?? '']
  const client = query.get('client_id') ?? (idToken === null ? null : decodeJwt(idToken).aud)
  if (client !== clientId) return { shows: 'Missing parameters: id_token_hint' }
  if (!signOutUrls.includes(redirectUri)) return { shows: 'Invalid redirect uri' }
  return idToken === null ? { shows: 'Do you want to log out?' } : back(redirectUri, query.get('state'))
}

/** Entra asks which account to sign out, also with an ID token, unless it has the claim `login_hint` as `logout_hint`. */
export const entra: LogoutEndpoint = ({ searchParams: query }, { signOutUrls }) => {
  const idToken = query.get('id_token_hint')
  const isNamed = idToken !== null && decodeJwt(idToken).login_hint !== undefined && decodeJwt(idToken).login_hint === query.get('logout_hint')
  const redirectUri = query.get('post_logout_redirect_uri') ?? ''
  if (!isNamed) return { shows: 'Pick an account to sign out of' }
  return signOutUrls.includes(redirectUri) ? back(redirectUri, query.get('state')) : { shows: 'You signed out of your account' }
}

/**
 * Auth0 names the session by the ID token or by its `sid`, and compares the page to return to with its query. The older endpoint compares it
 * without the query, and returns no `state`.
 */
export const auth0: LogoutEndpoint = ({ pathname, searchParams: query }, { clientId, signOutUrls }) => {
  if (pathname === '/v2/logout') {
    const returnTo = new URL(query.get('returnTo') ?? '')
    const isAllowed = query.get('client_id') === clientId && signOutUrls.includes(returnTo.origin + returnTo.pathname)
    return isAllowed ? { location: returnTo.href } : { shows: 'The "returnTo" querystring parameter is not defined as a valid URL in "Allowed Logout URLs".' }
  }
  const [idToken, sid] = [query.get('id_token_hint'), query.get('logout_hint')]
  if (idToken === null && (sid === null || query.get('client_id') !== clientId)) return { shows: 'Do you want to log out?' }
  if (idToken !== null && sid !== null && decodeJwt(idToken).sid !== sid) return { shows: 'invalid_request: logout_hint' }
  const redirectUri = query.get('post_logout_redirect_uri') ?? ''
  return signOutUrls.includes(redirectUri) ? back(redirectUri, query.get('state')) : { shows: 'Oops!, something went wrong' }
}

/** Cognito announces the endpoint, but takes parameters of its own, and returns no `state`. */
export const cognito: LogoutEndpoint = ({ searchParams: query }, { clientId, signOutUrls }) => {
  if (query.get('client_id') !== clientId) return { shows: "Required String parameter 'client_id' is not present" }
  const logoutUri = query.get('logout_uri') ?? ''
  return signOutUrls.includes(logoutUri) ? { location: logoutUri } : { shows: "Required String parameter 'redirect_uri' is not present" }
}
