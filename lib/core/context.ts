import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { AuthChannel } from '../audit.js'
import { AuthError } from '../errors.js'
import type { PageLayout, View } from './pages/layout.js'
import type { Accounts } from '../accounts/accounts.js'
import type { CreateUserHook, DeleteHook, GuestHook, LinkHook, LinkingPolicy, SignInHook } from '../hooks.js'
import type { ExternalProvider } from '../providers/provider.js'
import type { Sealer } from '../sealed.js'
import type { OneTimeEntries, StoreCapabilities, StoredSessions } from '../session/store.js'
import type { RateLimits } from './limits.js'
import type { MailTokens } from './mail-links.js'
import type { MailPages } from './mail.js'
import type { Mailer } from './mailer.js'
import type { Link, User } from '../accounts/account.js'
import type { AuthenticationMethod, Principal, Proof } from '../authentication.js'
import type { Findings } from './findings.js'
import type { Content } from './pages/elements.js'
import type { HashingSubmission, Passwords, Submission } from './submission.js'
import type { RedirectPages } from './redirect-pages.js'
import type { Site } from './site.js'

/** What the options of features became, by the option; null for one that is not given. */
export interface Parts {}

/**
 * What acts, guards and hooks work with, made once from the options. Parts that no option asks for
 * are null. Parts that only features use are declared by them.
 */
export interface AuthContext {
  readonly accounts: Accounts
  /** What the store keeps besides accounts. */
  readonly capabilities: StoreCapabilities
  /** Keeps the records of a use: the entries of the store, else those of this application. */
  readonly records: OneTimeEntries
  /** The sessions beside the users; null where a session store of the application has them. */
  readonly listedSessions: StoredSessions | null
  /** The lifetime of a remembered session in milliseconds; null where users are not asked. */
  readonly remember: number | null
  /** `app.auth.channel`. */
  readonly channel: AuthChannel
  readonly site: Site
  readonly prefix: string
  readonly redirects: RedirectPages
  /** Redirects a navigation on another host to `baseUrl`. */
  readonly redirectToBaseUrl: onRequestAsyncHookHandler
  readonly limits: RateLimits
  readonly linking: LinkingPolicy
  readonly onCreateUser: CreateUserHook | null
  readonly onSignIn: SignInHook | null
  readonly onLink: LinkHook | null
  readonly onDelete: DeleteHook | null
  readonly onGuest: GuestHook | null
  readonly providers: readonly ExternalProvider[]
  /** The labels of other providers that this process has met, by their names. */
  readonly providerLabels: Map<string, string>
  /** Seals ID tokens in sessions; null where no provider has `signOut`. */
  readonly signOutSealer: Sealer | null
  readonly passwords: PasswordQueue | null
  readonly parts: Readonly<Parts>
  readonly changePasswordPage: string | null
  readonly mailer: Mailer | null
  readonly mailTokens: MailTokens | null
  /** The pages of the application for the links in mails. */
  readonly mailPages: Readonly<Record<keyof MailPages, string | null>> | null
  /** How pages of the plugin, of steps and of links look. */
  readonly layout: PageLayout | null
  /** Whether the option `pages` is given. */
  readonly hasPages: boolean
  /** Seals what waits, and the secrets of users; null without a data secret. */
  readonly sealer: Sealer | null
  /** The ways to authenticate, whether or not this process offers them. */
  readonly methods: readonly Method[]
  /** Those that this process offers. */
  readonly offered: readonly Method[]
  /** What a sign-in passes once its first factor is known. */
  readonly signInChecks: readonly SignInCheck[]
  /** Whether the application requires a second factor of a sign-in; null for never. */
  readonly requiresFactor: ((signIn: FirstFactor) => unknown) | null
  /** Whether a user may act as another one; null for never. */
  readonly mayAct: ActingRule | null
  /** Which users must sign in by a connection; null without connections. */
  readonly connectionRule: ConnectionRule | null
  /** Where forms lead, as browsers see it, by the path below the prefix: of mounted acts alone. */
  readonly formPaths: Map<string, string>
  /** Shows a page of the plugin with what a form has sent, by its path below the prefix. */
  readonly pages: Map<string, ShowPage>
}

type ShowPage = (request: FastifyRequest, reply: FastifyReply, next: string | null) => Promise<FastifyReply>

/** Whether the application lets a user see it as another one, now. */
export type ActingRule = (actor: User, user: User) => Promise<boolean>

/** What asks for users, and for the one whom a session shows. */
export type WithAccounts = Pick<AuthContext, 'accounts' | 'mayAct'>

/** Which users must sign in by a connection: what `core/required-connection` asks. */
export interface ConnectionRule {
  /** Returns the connection by which the users of an address must sign in; null for none. */
  readonly requiredFor: (email: string) => Promise<RequiredConnection | null>
  /** Whether a provider is one of the options, or a connection that was not removed. */
  readonly isOpen: (provider: string) => Promise<boolean>
}

/** The connection by which the users of a domain must sign in. */
export interface RequiredConnection {
  readonly provider: string
  /** What people call it. */
  readonly label: string
  /** Where they sign in: a path of the application. */
  readonly loginPath: string
  /** For how many milliseconds keys and grants are good after the last sign-in by it. */
  readonly lifetime: number
  /** The ids of users who may sign in by other methods. */
  readonly except: readonly string[]
}

/** A sign-in by a first factor, which the application's rule is asked about. */
export interface FirstFactor {
  /** The user, with the claims that they have before `onSignIn`. */
  principal: Principal
  /** How they authenticated. */
  method: AuthenticationMethod
}

/**
 * What a sign-in passes once its first factor is known: returns the proof, or throws where the
 * sign-in is refused or has to wait.
 */
export type SignInCheck = (
  auth: AuthContext, request: FastifyRequest, findings: Findings, proof: Proof
) => Promise<Proof>

/** A way to authenticate, as its feature hands it over. */
export interface Method {
  readonly name: AuthenticationMethod
  /** The option that offers it, for the log of a process that lacks it. */
  readonly option: string
  /** Whether this process offers it. */
  readonly isOffered: (auth: Omit<AuthContext, 'offered'>) => boolean
  /** Whether a user has it here; default whether it is one of their factors. */
  readonly isOf?: (auth: Pick<AuthContext, 'providers' | 'parts'>, known: UserWithLinks) => boolean
  /** The names under which a user has it, such as those of providers; default its own. */
  readonly namesFor?: (auth: Pick<AuthContext, 'providers' | 'parts'>, known: UserWithLinks) => readonly string[]
  /** What it is as a factor of the account; absent for a first factor. */
  readonly factor?: FactorTraits
  /** Its part of a page that asks a user to authenticate. */
  readonly ask?: (auth: AuthContext, view: View, asked: AskedMethod) => Promise<Asking>
  /** What it adds to the page on which users sign in. */
  readonly offer?: (auth: AuthContext, view: View, hidden: Asked['hidden']) => Promise<SignInOffer>
  /**
   * Authenticates a user by the fields of a form; null where the form has none of them.
   *
   * @param owner finds the user, once what they sent was read
   */
  readonly verify?: (auth: AuthContext, submission: ProofSubmission, owner: Owner) => Promise<Proven> | null
}

export interface UserWithLinks {
  readonly user: Pick<User, 'email' | 'emailDisputed' | 'factors'>
  readonly links: ReadonlyArray<Pick<Link, 'provider'>>
}

export interface FactorTraits {
  /** Whether it signs in by itself, and is both factors then. */
  readonly signsIn?: boolean
  /** Whether each sign-in of a user who has it takes a second factor. */
  readonly isAlwaysDue?: boolean
  /** Whether a code that is mailed may stand in for it, where the user has lost it. */
  readonly isReplaceable?: boolean
}

export interface Asked {
  /** Where the form leads; undefined where its act is not mounted. */
  readonly action: string | undefined
  readonly hidden: Readonly<Record<string, string | null>>
  readonly email: string | null
  /** The names under which the user can authenticate. */
  readonly names: readonly string[]
  /** A field that the first form sends, too. */
  readonly field?: Content
}

export interface AskedMethod extends Asked {
  /** How the button looks of a form that is not one button. */
  readonly look: 'primary' | 'plain'
  /** Whether the user has no other method. */
  readonly isAlone: boolean
}

export interface Asking {
  readonly content: Content
  /** Whether it is one button, which stands beside the others. */
  readonly isButton?: boolean
  readonly script?: string
}

/** What a method adds to the page on which users sign in. */
export interface SignInOffer {
  /** A form or button of its own. */
  readonly way: Content
  /** What is beside the field for the e-mail. */
  readonly beside: Content
  /** What the browser may offer in that field, besides e-mails. */
  readonly autofill: 'webauthn'
  /** Fields that the form with the password sends, too. */
  readonly fields: Content
  /** What password managers are told. */
  readonly signals: Content
  readonly script: string
}

/** The fields by which a user authenticates. */
export interface ProofFields {
  readonly code?: string
  readonly password?: string
  readonly response?: unknown
}

export type ProofSubmission = Submission<ProofFields> & Partial<Pick<HashingSubmission<unknown>, 'passwords'>>

/**
 * Finds the user whose proof is checked, with the generation that they must still have; with what
 * was read of them to find them.
 */
export type Owner = () => Promise<Pick<User, 'userId' | 'generation'> & {
  readonly user?: User
  readonly links?: readonly Link[]
}>

export interface Proven {
  /** The user as they are now; null where a password was compared. */
  readonly user: User | null
  readonly proof: Proof
  /** How many recovery codes are left after one; null after another proof. */
  readonly codesLeft: number | null
}

/** What forms ask of the feature that hashes passwords. */
export interface PasswordQueue {
  /** Refuses a request while too many passwords wait; after a pause, unless its body was read. */
  readonly refuseWhenBusy: (request: FastifyRequest, isRead?: boolean) => Promise<void>
  readonly passwordsFor: (submission: { request: FastifyRequest, reply: FastifyReply }) => Passwords
}

/** Returns a part of the context, or throws `unavailable` with the option that it comes from. */
export function needed<T> (part: T | null, option: string): T {
  if (part !== null) return part
  throw new AuthError('unavailable', { cause: new Error(`this process lacks the option ${option}: set it everywhere`) })
}

/** Returns what seals a sign-in that waits; without it no sign-in can wait: `unavailable`. */
export function sealerOf ({ sealer }: Pick<AuthContext, 'sealer'>): Sealer {
  return needed(sealer, 'dataSecret, or the setting SVC_AUTH_DATA_SECRET')
}
