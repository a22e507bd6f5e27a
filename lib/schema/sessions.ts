import type { AuthenticationMethod, Principal, Proof, ReplacedSession } from '../authentication.js'

export type { AuthenticationMethod, Proof, ReplacedSession }

/** The column `proofs` of `svc_auth_sessions`: how and when the user authenticated. */
export interface SessionProofs {
  /** The time of the last authentication, in milliseconds since the epoch. */
  at: number
  /** The last authentication of each method. */
  methods: readonly Proof[]
  /**
   * Sessions that this one replaced in the last ten minutes: sign-ins that other tabs started in
   * them may still finish.
   */
  replacedSessions?: readonly ReplacedSession[]
  /**
   * The end of the session, in milliseconds since the epoch, with the option `session.remember`: no
   * user is signed in afterwards, whatever the cookie and the store say.
   */
  until?: number
  /** The callback that the user came by. */
  callback?: {
    /** A digest of its state. */
    readonly state: string
    /** The page after it. */
    readonly next: string
  }
  /** What the provider of the sign-in knows the user by at a sign-out there, encrypted. */
  signOutHint?: string
  /** The request that has started the session: if its answer is lost, it is sent again. */
  sent?: SentRequest
  /** The user as whom the user of the session sees the application. */
  acting?: Acting
  /** The session at the provider in which the user signed in, where the provider may end it. */
  atProvider?: ProviderSession
}

/** A session at a provider. The hashes are of the provider's name and of an id there. */
export interface ProviderSession {
  /** The hash of the session (`sid`); absent where the ID token names none. */
  session?: string
  /** The hash of the user (`sub`). */
  user: string
  /** When the sign-in was started here, in milliseconds since the epoch. */
  startedAt: number
}

/** The part of an impersonation in the session of the user who has started it. */
export interface Acting {
  /** The user who is shown, with claims as of the start or the last refresh. */
  user: Omit<Principal, 'impersonator'>
  /** The generation of that user as of the start. */
  generation: number
  /** Why it was started. */
  reason: string
  /** When it was started, in milliseconds since the epoch, like all times here. */
  startedAt: number
  /** When it ends. */
  until: number
  /** When the application last allowed it. */
  allowedAt: number
}

/** A request that has started a session, as that session knows it for a minute. */
export interface SentRequest {
  /** When it was answered, in milliseconds since the epoch. */
  at: number
  /** Its path. */
  path: string
  /** An HMAC of the request, keyed by the session before; absent for one without a secret. */
  digest?: string
  /** The id of the session, encrypted by a key that is derived from that of the session before. */
  sealedId: string
  /** The page after the sign-in, where the request does not name it. */
  next: string | null
  /** How often it may still be answered again. */
  left: number
}

/** The column `data` of `svc_auth_sessions`: the application's part of the session. */
export interface SessionData {
  /** What differs from the cookie that the plugin was configured with. */
  cookie?: Record<string, unknown>
  /** The other members of the session. */
  members?: Record<string, unknown>
  /**
   * In place of the two, their JSON text in base64: where they hold text that is not text for
   * Postgres, such as U+0000.
   */
  encoded?: string
}

/** The column `content` of `svc_auth_pending`: what is continued with. */
export type EntryContent = Record<string, unknown>
