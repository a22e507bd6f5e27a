/** What an application writes itself where `isolatedDeclarations` asks for the types of its exports. */
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, {
  type Accounts, type AnyRequest, type Auth, type AuthPluginOptions, type AuthStore, type BlockOptions, type DeleteHook,
  type ExtraClaims, GoogleProvider, type GrantableClaims, type Guard, type Jwk, type LinkHook, type LinkingPolicy,
  LocalIdentityProvider, type LocalIdentityProviderOptions, type MailChoices, MemoryAuthStore, type PasswordRules, type Principal,
  type RateLimitStore, type RecentProof, type RegistrationPolicy, type RequiredClaims, type SendMail, type SessionCookieOptions,
  type SignInHook, type SignInOptions, type SignInUrlOptions, type UserList, type UserPage, type UserToCreate
} from 'fastify-svc-auth'
import { type PageLink, Pages, type PagesOptions } from 'fastify-svc-auth/pages'
import { Passkeys } from 'fastify-svc-auth/passkeys'
import { type BreachedCheck, breached } from 'fastify-svc-auth/passwords'
import * as tables from 'fastify-svc-auth/schema/postgres'
import { SecondFactor } from 'fastify-svc-auth/second-factor'
import { type MailOf, type Mailbox, type ProviderUser, type TestProvider, mailbox } from 'fastify-svc-auth/testing'

export const schema: typeof tables = tables
export const check: BreachedCheck = breached()
export const mails: Mailbox = mailbox()
export const sendMail: SendMail = mails.sendMail
export const choices: MailChoices = { notices: false }
export const password: PasswordRules = { check, minLength: 12 }
export const registration: RegistrationPolicy = { roles: ['member'], verify: 'required' }
export const localOptions: LocalIdentityProviderOptions = { password, registration, sendMail, mails: choices }
export const local: LocalIdentityProvider = new LocalIdentityProvider(localOptions)
export const store: AuthStore = new MemoryAuthStore()
export const cookie: SessionCookieOptions = { maxAge: null }
export const onSignIn: SignInHook = async ({ principal }) => { if (principal.userId === '') throw new Error('nobody') }
export const onLink: LinkHook = async () => {}
export const onDelete: DeleteHook = async () => {}
export const linking: LinkingPolicy = 'never'
export const links: PageLink[] = [{ label: 'Privacy', href: '/privacy' }]
export const pagesOptions: PagesOptions = { name: 'Shop', links }
export const options: AuthPluginOptions = {
  local,
  store,
  onSignIn,
  onLink,
  onDelete,
  linking,
  session: { cookie },
  providers: [new GoogleProvider({ clientId: 'an-id', clientSecret: 'a secret' })],
  pages: new Pages(pagesOptions),
  passkeys: new Passkeys({ name: 'Shop' }),
  secondFactor: new SecondFactor({ issuer: 'Shop' })
}
export const app: FastifyInstance = Fastify()
app.register(authPlugin, options)

export const auth: Auth = app.auth
export const requireClaims: (required: RequiredClaims) => Guard = app.auth.requireClaims
export const requireRecent: (required: RecentProof) => Guard = app.auth.requireRecent
export const refresh: (request: AnyRequest) => Promise<Principal | null> = app.auth.refresh
export const listUsers = async (list: UserList): Promise<UserPage> => app.auth.users(list)
export const createUser = (user: UserToCreate): ReturnType<Auth['createUser']> => app.auth.createUser(user)
export const block = (userId: string, how: BlockOptions): ReturnType<Accounts['changeUser']> => app.auth.block(userId, how)
export const grant = (userId: string, claims: GrantableClaims): ReturnType<Auth['grant']> => app.auth.grant(userId, claims)
export const issue = (userId: string, claims: ExtraClaims): Promise<string> => local.issueIdToken(userId, claims)
export const nextReset = async (): Promise<MailOf<'reset-password'>> => mails.next('reset-password')
export type { Jwk, ProviderUser, RateLimitStore, SignInOptions, SignInUrlOptions, TestProvider }
