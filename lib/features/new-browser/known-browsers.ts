import type { FastifyReply, FastifyRequest } from 'fastify'
import type { MailTokens } from '../../core/mail-links.js'
import type { PagesOfPart, PartSetup } from '../../core/feature.js'
import { OptionsError } from '../../errors.js'
import { isEqual } from '../../secrets.js'
import { cookiesNamed } from '../../session/cookies.js'
import { cookieFlags } from '../../session/lifetime.js'
import { expireDuplicates } from '../../session/several-cookies.js'

declare module '../../core/context.js' {
  interface Parts {
    /** Null without the option `notices.newBrowser`. */
    readonly knownBrowsers: KnownBrowsers | null
  }
}

/** The longest time that browsers keep a cookie. */
const MAX_AGE_S = 400 * 24 * 60 * 60

/** How many users one browser is known for; the oldest goes. */
const MAX_USERS = 8

/** 96 bits of a hash: nobody finds a user with the mark of another one. */
const MARK_LENGTH = 16
const MARK = /^[\w-]{16}$/

/**
 * Knows the browsers in which a user has signed in, by a cookie with a keyed hash of the user's id.
 * It holds nothing of the browser, and the store holds nothing of it.
 */
export class KnownBrowsers {
  /** The name of the cookie. */
  readonly cookieName: string
  readonly pages: PagesOfPart['pages'] = {}
  readonly #tokens: MailTokens

  constructor (tokens: MailTokens, cookieName: string) {
    this.#tokens = tokens
    this.cookieName = cookieName
  }

  /** Whether the browser of a request is known for a user. */
  knows (request: FastifyRequest, userId: string): boolean {
    const marks = this.#marksIn(request)
    return this.#marksOf(userId).some(mark => marks.some(other => isEqual(mark, other)))
  }

  /** Makes the browser known for a user, for 400 days from now on. */
  remember (request: FastifyRequest, reply: FastifyReply, userId: string): void {
    const { session } = request
    const own = this.#marksOf(userId)
    // Those of other users cannot be told from those of other keys.
    const others = this.#marksIn(request).filter(mark => !own.includes(mark))
    const value = [own[0], ...new Set(others)].slice(0, MAX_USERS).join('.')
    const flags = cookieFlags(session)
    if (cookiesNamed(request, this.cookieName).length > 1) expireDuplicates(reply, this.cookieName, flags)
    // With `strict`, the callback of a provider would come from an unknown browser.
    const sameSite = flags.sameSite === 'none' ? 'none' : 'lax'
    reply.setCookie(this.cookieName, value, { ...flags, httpOnly: true, sameSite, maxAge: MAX_AGE_S })
  }

  #marksIn (request: FastifyRequest): string[] {
    return cookiesNamed(request, this.cookieName).flatMap(value => value.split('.')).filter(mark => MARK.test(mark))
  }

  /** The first one is of the newest key. */
  #marksOf (userId: string): string[] {
    return this.#tokens.digestsOf(`known browser ${userId}`).map(digest => digest.slice(0, MARK_LENGTH))
  }
}

/** @throws OptionsError without what sends the notice */
export function knownBrowsers ({ mails, cookieName }: PartSetup): KnownBrowsers {
  if (mails === null) {
    throw new OptionsError('notices.newBrowser needs sendMail of the LocalIdentityProvider, which sends the notice')
  }
  if (!mails.notices) {
    throw new OptionsError('notices.newBrowser needs notices, which mails: { notices: false } of the ' +
      'LocalIdentityProvider switches off; leave one of the two out')
  }
  // svc_session and svc_known; the prefix __Host- stays.
  return new KnownBrowsers(mails.tokens, `${cookieName.replace(/_?session$/, '')}_known`)
}
