import type { FastifyReply, FastifyRequest } from 'fastify'
import { wantsJson } from '../http/accept.js'
import { isRead } from '../http/own-origin.js'
import { publicPath, withParameter } from '../http/redirects.js'
import type { LinkMailKind } from '../local/mail.js'
import { answerFailure, noteFailure } from './answers.js'
import type { RouteContext } from './context.js'
import { type FormPage, sendPage } from './form-page.js'
import { LINK_PATHS } from './mailer.js'

/** The link that a page is about. */
export interface OpenLink<Proof> {
  token: string
  /** What {@link LinkPageOptions.open} found out about the token. */
  proof: Proof
  /** The path that the forms of the page are sent to. */
  action: string
}

/** The page behind the links of one kind. */
export interface LinkPageOptions<Proof> {
  kind: LinkMailKind
  /** The page of the application in its place, as browsers see it; null for none. */
  instead: string | null
  /** The title of the page while its link cannot be redeemed. */
  title: string
  /**
   * Verifies a token without redeeming it.
   *
   * @throws AuthError `invalid_token`
   */
  open: (token: string) => Promise<Proof>
  /** Returns the page for a link that can be redeemed. */
  page: (link: OpenLink<Proof>, request: FastifyRequest) => FormPage
}

/** Shown in place of the forms when a link cannot be redeemed. */
const LINK_IS_OVER = ['The link in your mail works for a limited time, and once. ' +
  'Open the newest one, or go back to the application and ask for a new one.']

/**
 * The page that a link in a mail leads to: the one of the plugin, or a redirect to that of the
 * application. Opening it redeems nothing, because mail servers and previews open links too.
 */
export class LinkPage<Proof> {
  readonly #context: Pick<RouteContext, 'pages'>
  readonly #action: string
  readonly #options: LinkPageOptions<Proof>

  constructor (context: RouteContext, options: LinkPageOptions<Proof>) {
    this.#context = context
    this.#action = publicPath(`${context.prefix}/${LINK_PATHS[options.kind]}`, context.baseUrl)
    this.#options = options
  }

  /** Answers `GET` with the query parameter `token`. */
  async show (request: FastifyRequest, reply: FastifyReply, token: string): Promise<FastifyReply> {
    const { instead, open, page } = this.#options
    if (instead !== null) return reply.redirect(withParameter(instead, 'token', token), 302)
    const proof = await open(token)
    return sendPage(reply, page({ token, proof, action: this.#action }, request))
  }

  /**
   * Answers a failure of the page or of its form: on the page of the plugin, so that no redirect
   * holds the token, unless a JSON client or a page of the application has sent the form. An error
   * handler of the routes.
   */
  readonly fail = async (error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { pages } = this.#context
    const { instead, title, open, page } = this.#options
    const { error_next: errorNext }: { error_next?: unknown } = Object(request.body)
    // A form may give a password, as a sign-in does.
    const attempt = isRead(request) ? {} : { signInAt: 'local' }
    if (instead !== null || wantsJson(request) || pages.asked(request, errorNext) !== null) {
      return answerFailure(request, reply, error, { page: pages.forError(request, errorNext), ...attempt })
    }

    const { statusCode, message } = noteFailure(request, reply, error, attempt.signInAt)
    const { token }: { token?: unknown } = Object(isRead(request) ? request.query : request.body)
    const proof = typeof token === 'string' ? await open(token).catch(() => null) : null
    const shown = proof === null || typeof token !== 'string'
      ? { title, text: LINK_IS_OVER, forms: [] }
      : page({ token, proof, action: this.#action }, request)
    return sendPage(reply.code(statusCode), shown, message)
  }
}
