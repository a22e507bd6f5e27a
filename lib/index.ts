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
export type { NoticeOptions } from './features/options.js'
export type { RememberOptions, SessionCookieOptions, SessionOptions } from './session/session-options.js'
export type { RateLimitOptions, RateLimitStore } from './core/limits.js'
export type { Auth, SignInOptions } from './features/app-auth/auth.js'
export type {
  AuditEvent, AuditEvents, AuditOrigin, AuditedProvider, AuditedUser, AuthChannel, AuthEvents
} from './audit.js'
export type { AuthenticationContext } from './authentication.js'
export {
  type Account, type AccountLink, type AccountStatus, type Block, type ConnectionUse, type Credential, type Factor,
  type Link, type Subject, type User, isBlocked, linksOf, statusOf, userOf
} from './accounts/account.js'
export { Accounts, type OnCreate } from './accounts/accounts.js'
export type {
  AccountQuery, AuthStore, CreateHook, Rule, UserQuery, UsersFilter, UsersQuery, UniqueKeys
} from './accounts/auth-store.js'
export type { NotedBrowser, UserChange, UserUpdate } from './accounts/changes.js'
export type { ConfirmedEmail, FoundAddress, MailTokenClaims, NewPassword } from './accounts/credentials.js'
export type { FactorAttempt, FactorChange, FactorSpending } from './accounts/factors.js'
export type {
  MailSignIn, ProvenMailbox, SignInChange, UnprovenMethod, UnprovenMethods
} from './accounts/sign-in.js'
export type {
  CanSignIn, EnteredIdentity, FoundUser, LinkedIdentity, NewUser, NotedSignIn
} from './accounts/identities.js'
export { Authorization } from './features/app-auth/authorization.js'
export type {
  BlockOptions, Cause, KeptSession, SignOutOptions, UserFactor, UserFilter, UserList, UserPage, UserToCreate
} from './features/app-auth/users.js'
export type {
  CreateUserHook, CreatedClaims, Deletion, DeleteHook, GuestHook, GuestSignIn, LinkHook, Linking, LinkingPolicy,
  ProviderIdentity, SignIn, SignInHook, UserCreation
} from './hooks.js'
export type {
  ImpersonateOptions, ImpersonationBarOptions, ImpersonationOptions, ImpersonationRequest
} from './features/impersonation/options.js'
export type { OpenedMailToken, UnusableMailToken, UsableMailToken } from './features/mail-links.js'
export type { UserSession } from './features/sessions/list.js'
export type { AnyReply, AnyRequest, Bivariant, Guard } from './core/guard.js'
export type { GuardOptions, RecentProof, RequiredClaims } from './features/app-auth/guards.js'
export type { GuestMembers, GuestOptions } from './features/guests/guests.js'
export type { AuthorizationClaims, Claims, GrantableClaims, IdentityClaims } from './claims.js'
export { countableEmail } from './countable-email.js'
export { canonicalEmail } from './email.js'
export { AuthError, type AuthErrorCode, OptionsError, SignInRefused } from './errors.js'
export type { SignInUrlOptions } from './features/identities/signed-requests.js'
export {
  type AccountRoutes, LocalIdentityProvider, type LocalIdentityProviderOptions, type RegistrationPolicy
} from './features/local/local-identity-provider.js'
export type {
  LinkMailKind, Mail, MailChoices, MailMembers, MailOrigin, MailPages, NoticeMailKind, SendMail
} from './core/mail.js'
export type { Argon2Options, PasswordVerdict } from './features/password/hashing.js'
export type { Caller } from './core/fair-queue.js'
export type { PasswordCheck, PasswordContext } from './features/password/checks.js'
export type { PasswordRules } from './features/password/rules.js'
// With the type of the guards that tokens add to Auth.
export type { BearerUse } from './features/tokens/bearer.js'
export type { AuthenticatedCaller, CallerKind, CallerMembers, CallerUse } from './features/callers/callers.js'
export type { ResourceMetadata } from './features/tokens/metadata.js'
export { TokenVerifier, type TokenVerifierOptions } from './features/tokens/token-verifier.js'
export type { TokenClaims, TokenUse } from './features/tokens/token-claims.js'
export type { ExtraClaims } from './features/tokens/token-issuer.js'
export type { Jwk, PublicJwk } from './features/tokens/token-keys.js'
export type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, EndSessionRequest,
  ExternalProvider, Identity, LogoutToken, ProviderOptions, ProviderTokens, UncheckedIdentity
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
export { type OpenapiComponents, openapiComponents } from './core/openapi.js'
export type * from './schema/extras.js'
export type * from './schema/sessions.js'
export type { AuthenticationState, Principal } from './session/record.js'
export type {
  Attempt, AttemptCounter, EndedSession, EntryKey, ExceededLimit, FoundSession, ListedSession, NewSession,
  OneTimeEntries, OneTimeEntry, ProviderEnd, RevocationListener, Revocations, SessionChange, SessionUser,
  ShowingSession, StoreCapabilities, StoredSessions
} from './session/store.js'
export { MemoryAuthStore } from './engines/memory/memory.js'
export { SqlAuthStore, type SqlAuthStoreOptions } from './engines/sql.js'
export type { SqlEngine, TransactionOf } from './engines/sql.js'
