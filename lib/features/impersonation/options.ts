import type { User } from '../../accounts/account.js'
import type { ActingRule } from '../../core/context.js'
import { callHook } from '../../hooks.js'
import { type ChecksOf, boolean, callable, optional, table, wholeNumber } from '../../option-checks.js'

/** The argument of the rule `allow` of {@link ImpersonationOptions}. */
export interface ImpersonationRequest {
  /** The user who would see the application as the other one. */
  actor: User
  /** The user who would be shown. */
  user: User
}

/** The option `impersonation`. */
export interface ImpersonationOptions {
  /**
   * Whether a user may see the application as another one: `true`, and nothing else, allows it. A
   * user is never shown to one whom they may be shown themselves. It is asked with both as the
   * store has them, at the start and then at most once a minute.
   */
  allow: (asked: ImpersonationRequest) => boolean | Promise<boolean>
  /** The longest time in minutes, 1 to 60; default 60. */
  minutes?: number | undefined
  /** Whether a mail `impersonated` tells the user of each start; default false. */
  notify?: boolean | undefined
}

/** How `impersonate` shows a user. */
export interface ImpersonateOptions {
  /** Why, for the event and the session: text of at most 200 characters. */
  reason: string
  /** At most so many minutes; default as the option `impersonation` says, and not more. */
  minutes?: number | undefined
}

/** How `impersonationBar` is made. */
export interface ImpersonationBarOptions {
  /** The page after the end: a path of this application; default `/`. */
  next?: string | undefined
}

const IMPERSONATION = {
  allow: callable<ImpersonationOptions['allow']>('({ actor, user }) => boolean'),
  minutes: optional(wholeNumber(1, 60, 'minutes'), 60),
  notify: optional(boolean, false)
} satisfies ChecksOf<ImpersonationOptions>

export const checkedImpersonation = optional(table(IMPERSONATION), null)

export type Impersonation = NonNullable<ReturnType<typeof checkedImpersonation>>

declare module '../../core/context.js' {
  interface Parts {
    readonly impersonation: Impersonation | null
  }
}

/** Makes the rule of what the application allows; both ways it would hide who has done what. */
export function ruleOf ({ allow }: Impersonation): ActingRule {
  const isAllowed = async (actor: User, user: User): Promise<boolean> =>
    await callHook(() => allow({ actor, user })) === true
  return async (actor, user) => await isAllowed(actor, user) && !await isAllowed(user, actor)
}
