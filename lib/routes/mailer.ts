import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { inTime } from '../base/in-time.js'
import { FairQueue } from '../local/fair-queue.js'
import type { LocalMail } from '../local/identity-provider.js'
import { type AccountNotice, LINK_LIFETIMES, type LinkMailKind, type Mail, type MailOrigin } from '../local/mail.js'
import type { MailProof, MailTokens } from '../local/mail-token.js'
import type { Outbox } from '../local/outbox.js'
import { addressOf } from './limits.js'

/** Where the links of mails lead, below the prefix of the routes. */
export const LINK_PATHS: Readonly<Record<LinkMailKind, string>> = {
  register: 'local/register',
  'verify-email': 'local/verify-email',
  'reset-password': 'local/reset-password',
  'change-email': 'local/change-email/confirm'
}

/** How many mails are sent at a time, and how many wait. */
const LIMITS = { running: 32, waiting: 1000, retryAfter: 5 }

/** How long sending a mail may take. */
const SEND_MS = 30_000

/** The longest header that a mail repeats. */
const MAX_HEADER = 256

const NOTICES: readonly string[] =
  ['password-changed', 'email-changed', 'email-change-requested'] satisfies AccountNotice[]

/**
 * Sends mails after requests were answered, a few at a time. An answer therefore takes the same
 * time whether or not a mail follows, and no failure of a mail server fails a request.
 */
export class Mailer {
  readonly #mail: LocalMail
  readonly #base: URL
  readonly #queue = new FairQueue(LIMITS)
  readonly #underWay = new Set<Promise<void>>()

  /** @param base the public URL in front of the routes, with a slash at the end */
  constructor (mail: LocalMail, base: URL) {
    this.#mail = mail
    this.#base = base
  }

  /** Verifies the tokens in the links. */
  get tokens (): MailTokens {
    return this.#mail.tokens
  }

  /** Whether unknown addresses get a mail. */
  get answersUnknown (): boolean {
    return this.#mail.choices.unknownAddress
  }

  /**
   * Returns the outbox of a request.
   *
   * @throws AuthError `busy` when too many mails wait: for every address, so that it tells nothing
   */
  outbox (request: FastifyRequest, reply: FastifyReply): Outbox {
    const address = addressOf(request)
    const refusal = this.#queue.refusalFor(address)
    if (refusal !== null) throw refusal

    const about = originOf(request)
    const post = (makeMail: () => Promise<Mail>): void => {
      // A request without an answer ends with `close` alone, an injected one with `finish` alone.
      const sent = new Promise<void>(resolve => { reply.raw.once('finish', resolve).once('close', resolve) })
        .then(() => this.#queue.run(() => this.#send(makeMail), { address }))
        .catch((error: unknown) => logFailure(request.log, error))
        .then(() => { this.#underWay.delete(sent) })
      this.#underWay.add(sent)
    }
    return {
      link: (kind: LinkMailKind, proof: MailProof & { to?: string }) => {
        post(() => this.#linkMail(kind, proof, about))
      },
      notice: (kind, to) => {
        if (!this.#mail.choices.notices && NOTICES.includes(kind)) return
        post(async () => ({ kind, to, url: null, token: null, expiresIn: null, about }))
      }
    }
  }

  /** Waits for the mails under way, each of which has a limited time. */
  async drain (): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #linkMail (kind: LinkMailKind, proof: MailProof & { to?: string }, about: MailOrigin): Promise<Mail> {
    const token = await this.#mail.tokens.issue(kind, proof)
    const { to = proof.email } = proof
    const url = new URL(LINK_PATHS[kind], this.#base)
    url.searchParams.set('token', token)
    return { kind, to, url: url.href, token, expiresIn: LINK_LIFETIMES[kind], about }
  }

  async #send (makeMail: () => Promise<Mail>): Promise<void> {
    const mail = await makeMail()
    await inTime(SEND_MS, (async () => this.#mail.sendMail(mail))(), 'sendMail')
  }
}

/** Logs that a mail was not sent, without its address and without its link. */
function logFailure (log: FastifyBaseLogger, error: unknown): void {
  const { name, code }: { name?: unknown, code?: unknown } = Object(error)
  log.error({ event: 'fastify-svc-auth.mail', name, code }, 'a mail could not be sent')
}

function originOf ({ id, ip, headers }: FastifyRequest): MailOrigin {
  return {
    requestId: id,
    ip,
    userAgent: headers['user-agent']?.slice(0, MAX_HEADER) ?? null,
    language: headers['accept-language']?.slice(0, MAX_HEADER) ?? null
  }
}
