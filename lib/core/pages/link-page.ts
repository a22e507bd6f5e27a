import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AuthContext, needed } from '../context.js'
import { AuthError } from '../../errors.js'
import { isRead, sentFields, wantsJson } from '../site.js'
import type { ApplicationPages } from '../redirect-pages.js'
import { withParameter } from '../redirects.js'
import type { LinkMailKind, MailPages } from '../mail.js'
import { LINK_PATHS, type MailboxOwner, type MailToken, hasMailbox, userOfLink } from '../mail-links.js'
import { messagesOf } from './failure.js'
import { type Content, type PageForm, html, htmlForm } from './elements.js'
import type { Page, View } from './layout.js'
import { nextOfMail, recordFailure } from '../act.js'
import { answerFailure } from '../failure-answer.js'
import { waysOn } from './page.js'
import { type Operation, type SchemaTypes, operation, operationIdOf, redirect, token } from '../schema.js'
import { principalOf } from '../../session/record.js'

/**
 * The page that a link in a mail leads to: the one of the plugin, or a redirect to that of the
 * application. Opening it uses nothing, because mail servers and previews open links too.
 */
export interface LinkPage extends Pick<Operation, 'summary' | 'user'> {
  readonly kind: LinkMailKind
  /** The option with the page of the application in its place. */
  readonly customPage: keyof MailPages
  /** Makes the page of a link that can be used; throws `invalid_token` for another. */
  readonly open: (auth: AuthContext, view: LinkView) => Promise<Page>
}

export interface LinkView extends Pick<View, 'request' | 'texts' | 'typed'> {
  readonly token: string
  /** What each form sends besides its fields: the token, and where it leads. */
  readonly hidden: PageForm['hidden']
  /** Makes a form that sends the token. */
  readonly form: (
    submit: string, fields: Content, more?: Pick<PageForm, 'look' | 'choice'> & { hidden?: { not_me: string } }
  ) => Content
}

/** Verifies the token of a link without using it: the account must not have changed since. */
export async function openLink (
  { accounts, mailTokens }: Pick<AuthContext, 'accounts' | 'mailTokens'>, kind: LinkMailKind, token: string
): Promise<{ user: MailboxOwner, link: MailToken }> {
  const link = await needed(mailTokens, 'sendMail').verify(kind, token)
  const user = await userOfLink(accounts, link)
  if (!hasMailbox(user)) throw new AuthError('invalid_token')
  return { user, link }
}

const querystring = { type: 'object', required: ['token'], properties: { token } } as const

const answers = {
  200: {
    description: 'A page with a form; or a redirect to the page of the application, with `token`',
    content: { 'text/html': { schema: { type: 'string' } } }
  },
  302: redirect
}

/** Where the user asks for another link, and the word of what the page after its form says. */
const STEPS: Readonly<Record<LinkMailKind, readonly [ask: keyof ApplicationPages, done?: string]>> = {
  register: ['register'],
  'verify-email': ['account', 'email_confirmed'],
  'reset-password': ['forgotPassword', 'password_changed'],
  'change-email': ['account', 'email_changed'],
  'sign-in': ['login']
}

/** Mounts the page behind the links of a kind; returns what answers failures of its form there. */
export function mountLinkPage (
  scope: FastifyInstance, auth: AuthContext, { kind, summary, user, customPage: option, open }: LinkPage
) {
  const layout = needed(auth.layout, 'sendMail')
  const customPage = auth.mailPages?.[option] ?? null
  // A signed-in user sees on the page of their account what has changed.
  const [ask, done] = STEPS[kind]
  const after = (request: FastifyRequest, word = done): Record<string, string | null> => {
    const { redirects, hasPages } = auth
    const next = nextOfMail(auth, request)
    // A registration signs in.
    if (word === undefined) return { next }
    const page = principalOf(request) === null
      ? next && redirects.loginWith(request, next)
      : next ?? redirects.application.account
    return { done: hasPages ? word : null, next: page }
  }
  const pageOf = async (request: FastifyRequest, token: string): Promise<Page> => open(auth, {
    request,
    token,
    typed: sentFields(request),
    hidden: { ...after(request), token },
    texts: layout.textsFor(request),
    form: (submit, fields, { hidden, ...more } = {}) => htmlForm({
      action: auth.formPaths.get(LINK_PATHS[kind]),
      hidden: { ...after(request, hidden && 'email_released'), token, ...hidden },
      fields,
      submit,
      ...more
    })
  })

  /**
   * Answers a failure of the page or of its form: on the page of the plugin, so that no redirect
   * holds the token, unless a JSON client or a page of the application has sent the form.
   */
  async function fail (error: Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { redirects } = auth
    const { error_next: errorNext } = sentFields(request)
    // A form may give a password, as a sign-in does.
    const signInAt = isRead(request) ? undefined : 'local'
    if (customPage !== null || wantsJson(request) || redirects.asked(request, errorNext) !== null) {
      return answerFailure(auth, request, reply, error, { page: redirects.forError(request, errorNext), signInAt })
    }

    const refusal = recordFailure(request, reply, error, signInAt)
    const texts = layout.textsFor(request)
    const { token } = sentFields(isRead(request) ? { body: request.query } : request)
    const page = typeof token === 'string' ? await pageOf(request, token).catch(() => null) : null
    const ways = waysOn(auth, request, texts, [redirects.application[ask], texts.links.askAgain])
    const shown = page ?? { title: texts.titles[kind], content: [html`<p>${texts.links.over}</p>`, ways] }
    return layout.send(reply.code(refusal.statusCode), shown, messagesOf(texts, refusal))
  }

  scope.withTypeProvider<SchemaTypes>().get(`/${LINK_PATHS[kind]}`, {
    schema: {
      ...operation({
        summary,
        operationId: operationIdOf(`local/${kind}-page`),
        user,
        answers,
        refuses: ['invalid_request', 'invalid_token', 'unavailable']
      }),
      querystring
    },
    onRequest: auth.redirectToBaseUrl,
    errorHandler: fail
  }, async (request, reply) => {
    const { token } = request.query
    if (customPage !== null) return reply.redirect(withParameter(customPage, 'token', token), 302)
    return layout.send(reply, await pageOf(request, token))
  })
  return fail
}
