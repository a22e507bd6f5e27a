import type { LinkMailKind, Mail } from '../mails/mail.js'
import type { Allowance, Attempt, Counter, Rule } from './counters.js'
import { addressOf } from './limits.js'

export interface CountedMail extends Attempt {
  readonly kind: Mail['kind']
  /** The address in canonical form. */
  readonly to: string
  /** The user whose account the mail is about; absent where it is about the address alone. */
  readonly userId?: string
  /** How many mails of the client to this address were used: each ends the minute that it waits. */
  readonly uses?: number
}

/** Counts a mail, and returns the milliseconds until it may be sent; null for now. */
type MailLimit = (mail: CountedMail) => Promise<number | null>

/**
 * The limits of mailboxes. Each kind of mail has counts of its own, and there is none over all
 * kinds: a stranger could use it up.
 */
export interface MailLimits {
  /** Mails that serve the owner of the mailbox, no matter who asked for them. */
  readonly owner: MailLimit
  /** Mails that serve the browser that asked for them alone. */
  readonly asker: MailLimit
  /** Links that act for one account, which another user may have. */
  readonly account: MailLimit
  readonly notice: MailLimit
}

export const LINK_LIMITS: Readonly<Record<LinkMailKind, keyof MailLimits | null>> = {
  register: 'owner',
  'reset-password': 'owner',
  // Counted by Outbox.delayOf.
  'sign-in': null,
  'verify-email': 'account',
  'change-email': 'account'
}

const A_MINUTE = { max: 1, timeWindow: 60_000 }
const AN_HOUR = { max: 5, timeWindow: 60 * 60_000 }
/** Less than a mailbox gets, so that one user does not use up the mails of another one. */
const AN_HOUR_FOR_USER = { ...AN_HOUR, max: 3 }
/** More than a client gets, so that no single one uses up those of the owner. */
const AN_HOUR_FOR_ALL = { ...AN_HOUR, max: 30 }

const byMailbox = countedBy('mailbox', ({ to }) => to)
const byUser = countedBy('mails', ({ userId }) => String(userId))
const byUnusedMail = countedBy('mails', ({ request, to, uses }) => `${addressOf(request)} ${to} ${uses}`)
const byClientAndMailbox = countedBy('mails', ({ request, to }) => `${addressOf(request)} ${to}`)
const byUserAndMailbox = countedBy('mails', ({ userId, to }) => `${userId} ${to}`)

/** @param counter null for no limits */
export function setUpMailLimits (counter: Counter | null): MailLimits {
  const limited = (...rules: Array<Rule<CountedMail>>): MailLimit => {
    const count = counter?.(rules)
    return async mail => await count?.(mail) ?? null
  }
  const client = limited(byUnusedMail(A_MINUTE), byClientAndMailbox(AN_HOUR))
  const everyone = limited(byMailbox(AN_HOUR_FOR_ALL))
  return {
    owner: limited(byMailbox(A_MINUTE), byMailbox(AN_HOUR)),
    // What others have asked for is not told.
    asker: async mail => await client(mail) ?? (await everyone(mail) === null ? null : Infinity),
    account: limited(byUserAndMailbox(A_MINUTE), byUserAndMailbox(AN_HOUR_FOR_USER), byMailbox(AN_HOUR)),
    notice: limited(byUser(AN_HOUR), byMailbox(AN_HOUR))
  }
}

function countedBy (name: string, partOf: (mail: CountedMail) => string) {
  return (allowed: Allowance): Rule<CountedMail> => ({
    ...allowed, keyOf: mail => `svc-auth-${name}-${allowed.timeWindow}:${mail.kind} ${partOf(mail)}`
  })
}
