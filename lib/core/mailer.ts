import { finished } from 'node:stream'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import { withTimeout } from '../base/concurrency.js'
import { FairQueue } from './fair-queue.js'
import { type Allowance, type LimitedAttempt, type Counter, type LimitRule, addressOf } from './limits.js'
import { withQuery } from './redirects.js'
import { type Addressee, type MailLink, type MailTokens, type NoMail, type Outbox, linkWith } from './mail-links.js'
import {
  type AccountNotice, CODE_LIFETIME, LINK_LIFETIMES, type LinkMail, type LinkMailKind, type Mail, type MailOptions,
  MAIL_INTERVAL_MS, type MailOrigin
} from './mail.js'

/** How many mails are sent at a time, and how many wait. */
const LIMITS = { running: 32, waiting: 1000, retryAfter: 5 }

const SEND_MS = 30_000

/** How long the mails under way may take, all together, when the application closes. */
const CLOSE_MS = 10_000

/** The longest header that a mail repeats. */
const MAX_HEADER = 256

const EVENT = 'fastify-svc-auth.mail'

const WITHOUT_LINK = { url: null, token: null, code: null, expiresIn: null, accountUrl: null } as const

/** Where users look at their account. */
export interface AccountPage {
  readonly url: string
  /** Whether it is the plugin's, whose rows open by the query. */
  readonly hasRows: boolean
}

interface MailInfo {
  readonly kind: Mail['kind']
  /** Null without a request. */
  readonly requestId: string | null
  readonly log: FastifyBaseLogger
}

/** The application caused the mail. */
const NO_REQUEST: MailOrigin = { requestId: null, ip: null, userAgent: null, language: null }

type Unsent = NoMail | 'unconfirmed' | 'closing'

/**
 * Sends mails after requests were answered, a few at a time. An answer therefore takes the same
 * time whether or not a mail follows, and a failure of the mail server does not fail it.
 */
export class Mailer {
  readonly #tokens: MailTokens
  readonly #mail: MailOptions
  readonly #base: URL
  readonly #account: AccountPage | null
  readonly #limits: MailLimits
  /** Whether unknown addresses get a mail. */
  readonly answersUnknown: boolean
  /** Whether mails to one mailbox are limited. */
  readonly isLimited: boolean
  readonly #queue = new FairQueue(LIMITS)
  readonly #underWay = new Map<MailInfo, Promise<void>>()
  readonly #closing = new AbortController()

  /**
   * @param pages `base`: the public URL in front of the routes, with a slash at the end; `account`:
   *   the page of the account, null for none
   */
  constructor (
    mail: MailOptions, tokens: MailTokens, { base, account }: { base: URL, account: AccountPage | null },
    limits: MailLimits
  ) {
    this.#tokens = tokens
    this.#mail = mail
    this.#base = base
    this.#account = account
    this.#limits = limits
    this.answersUnknown = mail.choices.unknownAddress
    this.isLimited = mail.choices.limits
  }

  outbox (request: FastifyRequest, reply: FastifyReply): Outbox {
    const address = addressOf(request)
    const about = originOf(request)
    const post = (kind: Mail['kind'], deliver: () => Promise<Unsent | null>): void => {
      this.#post({ kind, requestId: request.id, log: request.log }, answered(reply).then(deliver))
    }
    const send = (
      mail: Omit<CountedMail, 'request'>, limit: keyof MailLimits | null, makeMail: () => Promise<Mail>
    ): void => {
      post(mail.kind, async () => {
        if (limit !== null && await this.#limits[limit]({ ...mail, request }) !== null) return 'limit'
        await this.#queue.run(() => this.#send(makeMail), { address, signal: this.#closing.signal })
        return null
      })
    }
    const none = (kind: Mail['kind'], reason: Unsent): void => { post(kind, async () => reason) }
    return {
      refuseWhenFull: () => {
        const refusal = this.#queue.refusalFor(address)
        if (refusal !== null) throw refusal
      },
      delayOf: async mail => this.#limits[mail.kind === 'sign-in' ? 'asker' : 'notice']({ ...mail, request }),
      link: (kind, link, user, code = null) => {
        const { userId, email, to } = link
        const address = to ?? email
        if (address === null) return none(kind, 'no-address')
        const recipient = recipientOf(address, user)
        send({ kind, userId, to: recipient.to }, LINK_LIMITS[kind], async () => {
          const shared = { ...await this.#linkTo(kind, link), ...recipient, accountUrl: null, about }
          return kind === 'sign-in' ? { ...shared, kind, code } : { ...shared, kind, code: null }
        })
      },
      code: (kind, code, user) => {
        const { userId, email: to } = user
        if (to === null) return none(kind, 'no-address')
        const content = { ...WITHOUT_LINK, code, expiresIn: CODE_LIFETIME }
        send({ kind, to, userId }, null, async () => ({ ...content, kind, ...recipientOf(to, user), about }))
      },
      sendTo: (kind, to, user) => {
        send({ kind, to }, 'owner', async () => ({ ...WITHOUT_LINK, kind, ...recipientOf(to, user), about }))
      },
      notice: (kind, user, row) => {
        const { userId, email: to, emailVerified } = user
        if (!this.#mail.choices.notices) return
        if (to === null || !emailVerified) return none(kind, 'unconfirmed')
        const content = { ...WITHOUT_LINK, accountUrl: this.#accountUrl(row) }
        send({ kind, to, userId }, 'notice', async () => ({ ...content, kind, ...recipientOf(to, user), about }))
      },
      skip: none
    }
  }

  /** As {@link Outbox} does, for what the application changes without a request: no limits. */
  sendOfApplication (kind: AccountNotice | 'verify-email', user: User, log: FastifyBaseLogger): void {
    const { email: to, emailVerified } = user
    if (to === null || (kind !== 'verify-email' && !(this.#mail.choices.notices && emailVerified))) return
    const shared = { ...recipientOf(to, user), about: NO_REQUEST }
    const makeMail = async (): Promise<Mail> => kind === 'verify-email'
      ? { ...await this.#linkTo(kind, { ...user, email: to, to: null }), ...shared, accountUrl: null, kind, code: null }
      : { ...WITHOUT_LINK, ...shared, accountUrl: this.#accountUrl(), kind }
    const delivery = this.#queue.run(() => this.#send(makeMail), { address: '', signal: this.#closing.signal })
    this.#post({ kind, requestId: null, log }, delivery.then(() => null))
  }

  /** Tells an administrator of a connection that one of its domains is proven no longer. */
  sendOfDomain (to: string, domain: string, log: FastifyBaseLogger): void {
    const mail: Mail = {
      ...WITHOUT_LINK, kind: 'domain-lapsed', domain, ...recipientOf(to, null), about: NO_REQUEST
    }
    const delivery = this.#queue.run(() => this.#send(async () => mail), { address: '', signal: this.#closing.signal })
    this.#post({ kind: mail.kind, requestId: null, log }, delivery.then(() => null))
  }

  /** Resolves when the mails of requests so far are sent, have failed or have timed out. */
  async sent (): Promise<void> {
    await Promise.all(this.#underWay.values())
  }

  /**
   * Gives the mails under way a limited time, then drops them and notes them in the log. Mails of
   * requests that go on afterwards, whose clients have left, are sent.
   */
  async close (): Promise<void> {
    await withTimeout(CLOSE_MS, this.sent(), 'sendMail').catch((reason: unknown) => {
      this.#closing.abort(reason)
      for (const mail of this.#underWay.keys()) logUnsent(mail, 'closing')
      this.#underWay.clear()
    })
  }

  #post (mail: MailInfo, delivery: Promise<Unsent | null>): void {
    this.#underWay.set(mail, this.#settle(mail, delivery))
  }

  async #settle (mail: MailInfo, delivery: Promise<Unsent | null>): Promise<void> {
    const log = await delivery.then(
      reason => () => { if (reason !== null) logUnsent(mail, reason) },
      (error: unknown) => () => { logFailure(mail, error) }
    )
    // A mail that was dropped is in the log already.
    if (this.#underWay.delete(mail)) log()
  }

  async #linkTo (kind: LinkMailKind, link: MailLink): Promise<Pick<LinkMail, 'url' | 'token' | 'expiresIn'>> {
    const token = await this.#tokens.issue(kind, link)
    return { url: linkWith(token, kind, this.#base), token, expiresIn: LINK_LIFETIMES[kind] }
  }

  #accountUrl (row?: string): string | null {
    if (this.#account === null) return null
    const { url, hasRows } = this.#account
    return row !== undefined && hasRows ? withQuery(url, { open: row }) : url
  }

  async #send (makeMail: () => Promise<Mail>): Promise<void> {
    const mail = await makeMail()
    await withTimeout(SEND_MS, (async () => this.#mail.sendMail(mail))(), 'sendMail')
  }
}

/** Resolves once a request is answered, or its client has closed the connection, even before. */
function answered ({ raw }: FastifyReply): Promise<void> {
  return new Promise(resolve => {
    // Responses of HTTP/2 pass for readable.
    finished(raw, { readable: false }, () => { resolve() })
  })
}

/** The log has neither the address of a mail nor its link. */
function logUnsent ({ kind, requestId, log }: MailInfo, reason: Unsent): void {
  log.info({ event: EVENT, requestId, kind, reason }, 'a mail was not sent')
}

function logFailure ({ kind, requestId, log }: MailInfo, error: unknown): void {
  const { name, code }: { name?: unknown, code?: unknown } = Object(error)
  log.error({ event: EVENT, requestId, kind, name, code }, 'a mail could not be sent')
}

/** The user is named only where the mail goes to an address that they have confirmed. */
function recipientOf (to: string, user: Addressee | null): Pick<Mail, 'to' | 'userId' | 'name'> {
  if (user === null) return { to, userId: null, name: null }
  const { userId, name, email, emailVerified } = user
  return { to, userId, name: emailVerified && to === email ? name : null }
}

function originOf ({ id, ip, headers }: FastifyRequest): MailOrigin {
  return {
    requestId: id,
    ip: ip ?? null,
    userAgent: headers['user-agent']?.slice(0, MAX_HEADER) ?? null,
    language: headers['accept-language']?.slice(0, MAX_HEADER) ?? null
  }
}

interface CountedMail extends LimitedAttempt {
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
interface MailLimits {
  /** Mails that serve the owner of the mailbox, no matter who asked for them. */
  readonly owner: MailLimit
  /** Mails that serve the browser that asked for them alone. */
  readonly asker: MailLimit
  /** Links that act for one account, which another user may have. */
  readonly account: MailLimit
  readonly notice: MailLimit
}

const LINK_LIMITS: Readonly<Record<LinkMailKind, keyof MailLimits | null>> = {
  register: 'owner',
  'reset-password': 'owner',
  // Counted by Outbox.delayOf.
  'sign-in': null,
  'verify-email': 'account',
  'change-email': 'account'
}

const A_MINUTE = { max: 1, timeWindow: MAIL_INTERVAL_MS }
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
  const limited = (...rules: Array<LimitRule<CountedMail>>): MailLimit => {
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
  return (allowed: Allowance): LimitRule<CountedMail> => ({
    ...allowed, keyOf: mail => `svc-auth-${name}-${allowed.timeWindow}:${mail.kind} ${partOf(mail)}`
  })
}
