import type { FastifyReply, FastifyRequest } from 'fastify'
import { wantsJson } from '../http/accept.js'
import { withParameter } from '../http/redirects.js'
import { isRead } from '../http/site.js'
import type { LinkMailKind } from '../mails/mail.js'
import { answerFailure, recordFailure } from './answers.js'
import type { MailContext } from './context.js'
import { failureOf } from '../pages/failure.js'
import { html } from '../pages/html.js'
import type { Page } from '../pages/page-layout.js'
import type { Texts } from '../pages/texts.js'
import { LINK_PATHS } from './mailer.js'
import { SECURITY, type SchemaTypes, linkPage, tags } from './schema-parts.js'

/** The link that a page is about. */
export interface OpenLink<Claims> {
  token: string
  /** What {@link LinkPageOptions.open} found out about the token. */
  link: Claims
  /** The path that the forms of the page are sent to. */
  action: string
}

/** The page behind the links of one kind. */
export interface LinkPageOptions<Claims> {
  kind: LinkMailKind
  /** What the document says of the page. */
  summary: string
  operationId: string
  /** Whether it shows something else to the signed-in user. */
  user: keyof typeof SECURITY
  /** The page of the application in its place, as browsers see it; null for none. */
  customPage: string | null
  /**
   * Verifies a token without using it.
   *
   * @throws AuthError `invalid_token`
   */
  open: (token: string) => Promise<Claims>
  /** Returns the page for a link that can be used. */
  page: (link: OpenLink<Claims>, texts: Texts, request: FastifyRequest) => Page
}

/**
 * The page that a link in a mail leads to: the one of the plugin, or a redirect to that of the
 * application. Opening it uses nothing, because mail servers and previews open links too.
 */
export class LinkPage<Claims> {
  readonly #context: Pick<MailContext, 'pages' | 'look' | 'ownSentences'>
  readonly #action: string
  readonly #options: LinkPageOptions<Claims>

  /** Mounts the page. */
  constructor (context: MailContext, options: LinkPageOptions<Claims>) {
    const path = `/${LINK_PATHS[options.kind]}`
    this.#context = context
    this.#action = context.pathOf(LINK_PATHS[options.kind])
    this.#options = options
    const { summary, operationId, user } = options
    context.scope.withTypeProvider<SchemaTypes>().get(path, {
      schema: { tags, summary, operationId, security: SECURITY[user], ...linkPage },
      onRequest: context.redirectToBaseUrl,
      errorHandler: this.fail
    }, async (request, reply) => this.#show(request, reply, request.query.token))
  }

  async #show (request: FastifyRequest, reply: FastifyReply, token: string): Promise<FastifyReply> {
    const { customPage, open, page } = this.#options
    if (customPage !== null) return reply.redirect(withParameter(customPage, 'token', token), 302)
    const link = await open(token)
    const { look } = this.#context
    return look.send(reply, page({ token, link, action: this.#action }, look.textsFor(request), request))
  }

  /**
   * Answers a failure of the page or of its form: on the page of the plugin, so that no redirect
   * holds the token, unless a JSON client or a page of the application has sent the form. An error
   * handler of the routes.
   */
  readonly fail = async (error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { pages, look, ownSentences } = this.#context
    const { customPage, kind, open, page } = this.#options
    const { error_next: errorNext }: { error_next?: unknown } = Object(request.body)
    // A form may give a password, as a sign-in does.
    const attempt = isRead(request) ? {} : { signInAt: 'local' }
    if (customPage !== null || wantsJson(request) || pages.asked(request, errorNext) !== null) {
      return answerFailure(request, reply, error, { page: pages.forError(request, errorNext), ...attempt })
    }

    const refusal = recordFailure(request, reply, error, attempt.signInAt)
    const texts = look.textsFor(request)
    const { token }: { token?: unknown } = Object(isRead(request) ? request.query : request.body)
    const link = typeof token === 'string' ? await open(token).catch(() => null) : null
    const shown = link === null || typeof token !== 'string'
      ? { title: texts.titles[kind], content: [html`<p>${texts.links.over}</p>`] }
      : page({ token, link, action: this.#action }, texts, request)
    return look.send(reply.code(refusal.statusCode), shown, { failure: failureOf(texts, refusal, ownSentences) })
  }
}
