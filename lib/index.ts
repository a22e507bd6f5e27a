/**
 * Sign-in for Fastify. Register {@link authPlugin}, then use its decorators: `app.auth` ({@link
 * Auth}), `app.authProviders`, `app.localIdp`, `request.principal` ({@link Principal}),
 * `request.authentication` ({@link AuthenticationState}) and `request.token` ({@link TokenClaims}).
 *
 * A refusal is an {@link AuthError} with a stable `code`, which the entries below name. A mistake
 * in options is an {@link OptionsError}.
 *
 * @module fastify-svc-auth
 */
export { default, default as authPlugin } from './plugin.js'
export type { AuthPluginOptions } from './options.js'
export type { SessionOptions } from './session/session-options.js'
export type { RateLimitOptions } from './rate-limits.js'
export type { Auth } from './app-auth/auth.js'
export type { AuditEvent, AuditEvents } from './audit.js'
export {
  type Account, type AccountStatus, type Credential, type Factor, type Link, type User, isBlocked, linksOf, statusOf,
  userOf
} from './accounts/account.js'
export { Accounts } from './accounts/accounts.js'
export type {
  AccountQuery, AuthStore, Rule, UserQuery, UsersFilter, UsersQuery, UniqueKeys
} from './accounts/auth-store.js'
export type { NewUser } from './accounts/identities.js'
export { Authorization } from './app-auth/authorization.js'
export type { Cause, UserPage } from './app-auth/users.js'
export type { Deletion, Linking, ProviderIdentity, SignIn } from './hooks.js'
export type { UserFactor } from './factors/factor-list.js'
export type { OpenedMailToken } from './mails/mail-links.js'
export type { UserSession } from './sign-in/user-sessions.js'
export type { Guard } from './app-auth/guards.js'
export type { AuthorizationClaims, Claims, IdentityClaims } from './claims.js'
export { canonicalEmail } from './email.js'
export { AuthError, type AuthErrorCode, OptionsError, SignInRefused } from './errors.js'
export { LocalIdentityProvider, type LocalIdentityProviderOptions } from './local-identity-provider.js'
export type { Mail, SendMail } from './mails/mail.js'
export type { PasswordVerdict } from './passwords/hashing.js'
export type { PasswordCheck } from './passwords/password-rules.js'
export type { TokenClaims } from './tokens/token-claims.js'
export { TokenVerifier, type TokenVerifierOptions } from './tokens/token-verifier.js'
export type {
  Authentication, AuthorizationRequest, AuthorizationResponse, EndSessionRequest, ExternalProvider, Identity,
  ProviderOptions, ProviderTokens, UncheckedIdentity
} from './providers/provider.js'
export { AppleProvider, type AppleProviderOptions } from './providers/apple.js'
export { Auth0Provider, type Auth0ProviderOptions } from './providers/auth0.js'
export { FacebookProvider, type FacebookProviderOptions } from './providers/facebook.js'
export { providersFromEnv } from './providers/from-env.js'
export { GitHubProvider, type GitHubProviderOptions } from './providers/github.js'
export { GoogleProvider, type GoogleProviderOptions } from './providers/google.js'
export { MicrosoftProvider, type MicrosoftProviderOptions } from './providers/microsoft.js'
export { OAuth2Provider, type OAuth2ProviderOptions, type ProviderApi } from './providers/oauth2.js'
export { type ClientCredential, OidcProvider, type OidcProfile, type OidcProviderOptions } from './providers/oidc.js'
export { type OpenapiComponents, openapiComponents } from './web/openapi.js'
export type { AuthenticationState, Principal } from './session/record.js'
export type { AttemptCounter } from './store/attempts.js'
export { MemoryAuthStore } from './store/memory.js'
export type { StoreCapabilities } from './store/capabilities.js'
export type { OneTimeEntries } from './store/one-time-entries.js'
export type { Revocations } from './store/revocations.js'
export type { StoredSessions } from './store/sessions.js'
export { SqlAuthStore, type SqlAuthStoreOptions } from './store/sql.js'
export type { SqlEngine } from './store/sql-engine.js'
