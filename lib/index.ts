/**
 * Sign-in for Fastify. Register {@link authPlugin}, then use its decorators: `app.auth` ({@link
 * Auth}), `app.authProviders`, `app.localIdp`, `request.principal` ({@link Principal}) and
 * `request.token` ({@link TokenClaims}).
 *
 * A refusal is an {@link AuthError} with a stable `code`, which the entries below name. A mistake
 * in options is an {@link OptionsError}.
 *
 * @module fastify-svc-auth
 */
export { default, default as authPlugin } from './plugin.js'
export type { AuthPluginOptions } from './options.js'
export type {
  PassedSessionOptions, RememberOptions, SessionCookieOptions, SessionOptions
} from './session/session-options.js'
export type { RateLimitOptions, RateLimitStore } from './rate-limits.js'
export type { Auth, SignInOptions } from './app-auth/auth.js'
export type { AuditEvents, AuditedProvider, AuditedUser, AuditOrigin, AuditSource } from './audit.js'
export {
  type Account, type AccountLink, type AccountStatus, type Block, type Credential, type Factor, type FactorKind,
  type Link, type Subject, type User, type UserExtras, isBlocked, linksOf, statusOf, userOf
} from './accounts/account.js'
export { Accounts } from './accounts/accounts.js'
export type {
  AccountQuery, AuthStore, Decision, Owners, Rule, UserQuery, UsersQuery, Wanted
} from './accounts/auth-store.js'
export type { UserChange } from './accounts/changes.js'
export type { MailTokenClaims, NewPassword, PasswordReset } from './accounts/credentials.js'
export type { FactorAttempt, FactorChange } from './accounts/factors.js'
export type { EnteredIdentity, FoundUser, LinkedIdentity, NewUser, NotedSignIn } from './accounts/identities.js'
export { Authorization } from './app-auth/authorization.js'
export type { BlockOptions, KeptSession, UserList, UserPage, UserToCreate, Users } from './app-auth/users.js'
export type { AuthChannel, AuthEvents } from './channel.js'
export type {
  DeleteHook, Deletion, LinkHook, Linking, LinkingPolicy, LinkingRule, ProviderIdentity, SignIn, SignInHook
} from './flows/sign-in-rules.js'
export type { UserFactor } from './flows/factor-list.js'
export type { OpenedMailToken, UnusableMailToken, UsableMailToken } from './mails/mail-links.js'
export type { UserSession } from './flows/sessions.js'
export type { SignInUrlOptions } from './flows/signed-requests.js'
export type { AnyReply, AnyRequest, Guard, RecentProof, RequiredClaims } from './app-auth/guards.js'
export type {
  AuthorizationClaimName, AuthorizationClaims, Claims, GrantableClaims, IdentityClaims, JsonValue
} from './claims.js'
export type { AuthenticationMethod, FormerSession, Proof } from './authentication.js'
export { canonicalEmail } from './email.js'
export { AuthError, type AuthErrorCode, type AuthErrorOptions, OptionsError, SignInRefused } from './errors.js'
export type { Caller } from './passwords/fair-queue.js'
export {
  type AccountRoutes, LocalIdentityProvider, type LocalIdentityProviderOptions, type RegistrationPolicy
} from './local-identity-provider.js'
export type {
  AccountNotice, CodeMail, CodeMailKind, LinkMail, LinkMailKind, Mail, MailChoices, MailOrigin, MailPages, NoticeMail,
  NoticeMailKind, SendMail
} from './mails/mail.js'
export type { Argon2Options } from './passwords/argon2-cost.js'
export type { PasswordVerdict } from './passwords/password-hasher.js'
export type { PasswordCheck, PasswordContext, PasswordRules } from './passwords/password-rules.js'
export type { ExtraClaims } from './tokens/token-issuer.js'
export type { TokenClaims, TokenUse } from './tokens/token-claims.js'
export type { Jwk, PublicJwk } from './tokens/token-keys.js'
export { TokenVerifier, type TokenVerifierOptions } from './tokens/token-verifier.js'
export type {
  Authentication, AuthorizationRequest, AuthorizationResponse, ClientAuthentication, ExternalProvider, Identity,
  ProviderOptions, ProviderTokens, SignInParameters, AuthenticationContext, UncheckedIdentity
} from './providers/provider.js'
export { Auth0Provider, type Auth0ProviderOptions } from './providers/auth0.js'
export { FacebookProvider, type FacebookProviderOptions } from './providers/facebook.js'
export { providersFromEnv } from './providers/from-env.js'
export { GitHubProvider, type GitHubProviderOptions } from './providers/github.js'
export { GoogleProvider, type GoogleProviderOptions } from './providers/google.js'
export { MicrosoftProvider, type MicrosoftProviderOptions } from './providers/microsoft.js'
export { OAuth2Provider, type OAuth2ProviderOptions, type ProviderApi } from './providers/oauth2.js'
export { OidcProvider, type OidcProfile, type OidcProviderOptions } from './providers/oidc.js'
export { type OpenapiComponents, openapiComponents } from './routes/openapi.js'
export type { AuthenticationState, Principal } from './session/record.js'
export type { Attempt, AttemptCounter, ExceededLimit } from './store/attempts.js'
export { MemoryAuthStore } from './store/memory.js'
export type { StoreMembers } from './store/members.js'
export type { EntryContent, EntryKey, OneTimeEntries, OneTimeEntry } from './store/one-time-entries.js'
export type { RevocationListener, Revocations } from './store/revocations.js'
export type {
  EndedSession, FoundSession, ListedSession, NewSession, SessionChange, SessionData, SessionProofs, SessionUser,
  StoredSessions
} from './store/sessions.js'
export { SqlAuthStore, type SqlAuthStoreOptions } from './store/sql.js'
export type { DrizzlePostgres, DrizzleSqlite, PostgresClient, SqlEngine, SqliteConnection } from './store/sql-engine.js'
