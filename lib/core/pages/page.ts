import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuthContext, needed } from '../context.js'
import { ANY_ORIGIN, withQuery } from '../redirects.js'
import { messagesOf, sentenceOf } from './failure.js'
import { type Content, type Html, type SettingsRow, type Texts, type WayOn, html, link, links } from './elements.js'
import { WHILE_IMPERSONATING } from '../acting.js'
import type { Page, PageMessages, View } from './layout.js'
import { type Act, type Mounting, type Mountpoint, pathOf, recordFailure, takeNotice } from '../act.js'
import type { User } from '../../accounts/account.js'
import type { AuthError } from '../../errors.js'
import type { CurrentUser } from '../current-user.js'
import { operation, operationIdOf, redirect } from '../schema.js'
import { sentFields } from '../site.js'
import { principalOf } from '../../session/record.js'

/** What each form of a page sends besides its fields. */
export interface Targets {
  /** The page after a success; null for the root of the application. */
  readonly next: string | null
  /** The page of the form, which shows its errors. */
  readonly error_next: string
  /** Others, such as `done`: the word of what the page after a success says. */
  readonly [field: string]: string | null
}

/** What the account page is made of. */
export interface AccountView extends View, CurrentUser {
  readonly auth: AuthContext
  /** Makes the row of a section, which is open if its form has failed. */
  readonly rowOf: (shown: Omit<SettingsRow, 'change'> & { change?: string }) => Html
  /** Where its forms lead; `open`: to the row, open again. */
  readonly targets: (after?: { done?: 'sent', open?: true }) => Targets
  /** Where the forms go that sign the user out. */
  readonly left: Targets
}

/** What the account page shows of a feature. */
export interface Section {
  readonly name: string
  /** Its place on the page, among those of the others. */
  readonly order: number
  readonly show: (view: AccountView) => Content | Promise<Content>
  /** The path of the script that it needs for this user. */
  readonly script?: (auth: AuthContext, user: User) => string | null
}

/** Makes a page; null once the request was answered otherwise. */
type PageOf = (auth: AuthContext, view: View) => Promise<Page | null>

const HTML = { type: 'string', description: 'A page in HTML' }

interface PageRoute {
  /** Below the prefix; its last part names the page in the document. */
  path: string
  when?: Act['when']
  /** Whether it answers 400, too: a page that says what is wrong with its parameters. */
  isChecked?: boolean
  /** Whether it is shown in impersonations: it starts nothing. */
  whileImpersonating?: true
}

export function page (route: PageRoute, pageOf: PageOf): Act {
  return { when: route.when, mount: mounting => { mountPage(mounting, route, pageOf) } }
}

function mountPage (
  { scope, auth, failurePages }: Mounting, { path, isChecked = false, whileImpersonating }: PageRoute, pageOf: PageOf
): void {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const layout = needed(auth.layout, 'pages')
  const show = async (
    asked: Pick<View, 'request' | 'reply' | 'typed' | 'failure'>,
    query: URLSearchParams,
    messagesIn: (texts: Texts) => PageMessages
  ): Promise<FastifyReply> => {
    const texts = layout.textsFor(asked.request)
    const is = (name: string): boolean => query.get(name) === 'true'
    const page = await pageOf(auth, {
      ...asked,
      texts,
      next: query.get('next'),
      opened: query.get('open'),
      needsFactor: is('second_factor'),
      isLost: is('lost')
    })
    return page === null ? asked.reply : layout.send(asked.reply, page, messagesIn(texts))
  }

  scope.get(path, {
    schema: operation({
      summary: `The page ${name}`,
      operationId: operationIdOf(`${name}-page`),
      user: 'signed-in-or-not',
      answers: { 200: HTML, 302: redirect, ...(isChecked && { 400: HTML }) },
      refuses: ['unavailable']
    }),
    ...(whileImpersonating && { config: WHILE_IMPERSONATING }),
    onRequest: auth.redirectToBaseUrl,
    // A redirect to a page would lead to this one, again and again.
    errorHandler: async (error, request, reply) =>
      showFailure(auth, request, reply, recordFailure(request, reply, error))
  }, async (request, reply) => {
    const query = new URL(request.url, ANY_ORIGIN).searchParams
    const error = query.get('error')
    return show({ request, reply, typed: {}, failure: null }, query, texts => ({
      failure: error === null ? null : sentenceOf(texts, knownHere(auth, error)),
      notice: takeNotice(auth, request, reply)
    }))
  })

  auth.pages.set(path.slice(1), async (request, reply, next) => {
    const query = new URLSearchParams(next === null ? {} : { next })
    return show({ request, reply, typed: sentFields(request), failure: null }, query, () => ({}))
  })

  failurePages.set(pathOf(auth, path.slice(1)), async (request, reply, failure, query) => {
    const typed = sentFields(request)
    return show({ request, reply, typed, failure }, query, texts => {
      reply.code(failure.statusCode)
      const isAskedAgain = failure.code === 'invalid_state' && typed.response !== undefined && typed.again === undefined
      return { ...messagesOf(texts, failure), isAskedAgain }
    })
  })
}

/** Returns the sentence for a code that a redirect has brought, of which more is known here. */
function knownHere ({ redirects: { application } }: Pick<AuthContext, 'redirects'>, code: string): string {
  if (code === 'unauthenticated') return 'signed_out'
  // The user may have come by the very provider that the account has, as another user there.
  return code === 'account_exists' && application.forgotPassword !== null ? 'account_exists_forgot' : code
}

const HEADINGS: Readonly<Record<number, keyof Texts['failures']>> = {
  403: 'forbidden', 404: 'notFound', 429: 'wait', 503: 'wait'
}

/** Answers with the page of a failure that no other page shows: a sentence and the ways on. */
export function showFailure (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply, refusal: AuthError
): FastifyReply {
  const { statusCode } = refusal
  const layout = needed(auth.layout, 'pages')
  const { support } = layout
  const texts = layout.textsFor(request)
  const { failures } = texts
  const { failure, way } = messagesOf(texts, refusal)
  const content = [html`<p>${failure}</p>`, way, waysOn(auth, request, texts)]
  // What support can find in the log by the id.
  if (statusCode === 403 || statusCode >= 500) {
    const tell = support === null ? failures.support : link(support, failures.support)
    content.push(html`<p class="faint">${tell} <code translate="no">${request.id}</code></p>`)
  }
  const title = failures[HEADINGS[statusCode] ?? (statusCode < 500 ? 'refused' : 'fault')]
  return layout.send(reply.code(statusCode), { title, content })
}

/** Makes the links of a page on which a user cannot go on: to sign in, and to the application. */
export function waysOn (
  { redirects, site }: AuthContext, request: FastifyRequest, { common, signIn }: Texts, ...first: WayOn[]
): Html {
  const login: WayOn = [principalOf(request) === null && redirects.login(request), signIn.title]
  return links(...first, login, [site.publicPath('/'), common.home])
}

/** Where forms of a page lead: after a success to `next`, after a failure to the page itself. */
export function targetsOf (
  mountpoint: Mountpoint, path: string, query: { readonly next: string | null, readonly [name: string]: string | null }
): Targets {
  return { next: query.next, error_next: withQuery(pathOf(mountpoint, path), query) }
}

export function redirected (reply: FastifyReply, path: string): null {
  reply.redirect(path, 302)
  return null
}
