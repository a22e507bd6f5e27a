import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { type AuthContext, needed } from './context.js'
import { type AuthErrorCode, SENT_TWICE } from '../errors.js'
import { sentFields, wantsJson } from './site.js'
import { ANY_ORIGIN, isOwnPath, pathnameOf, withParameter } from './redirects.js'
import type { Outbox } from './mail-links.js'
import { type Principal, principalOf } from '../session/record.js'
import {
  type Act, type AskedMail, type Mounting, forgetMail, keepNextOfMail, keepNotice, nextAuthenticationStep,
  pathOf, recordFailure, startedProvider
} from './act.js'
import { WHILE_IMPERSONATING } from './acting.js'
import { answerFailure } from './failure-answer.js'
import type { LimitName, RateLimits } from './limits.js'
import type { LinkPage } from './pages/link-page.js'
import { FORM_OR_JSON, type Operation, done, errorNext, next, operation, operationIdOf, redirect } from './schema.js'
import { runOnce, wasSentBefore } from './sent-again.js'
import type { HashingSubmission, Submission } from './submission.js'

/** A route that takes a form, or the same fields as JSON. */
export interface FormRoute<Fields extends Properties, Required extends readonly string[]>
  extends Pick<Operation, 'summary' | 'description' | 'user'> {
  /** Below the prefix. */
  path: string
  when?: Act['when']
  /** The name of the operation in the document; default after the path. */
  operationId?: string
  /** Its fields besides `next` and `error_next`: JSON Schemas by name. */
  fields: Fields
  required?: Required
  /** Whether the application may add fields of its own, for `onSignIn`. */
  allowsExtraFields?: boolean
  /** The answers to JSON clients by status; default 204. Browsers are redirected. */
  answers?: Readonly<Record<number, object>>
  /** Its error codes, besides those that each form has and those of what it says here. */
  refuses?: readonly AuthErrorCode[]
  /**
   * Whether it hashes passwords: while too many wait, it is refused before its body is read. Or the
   * field with a password that the form may do without: it is refused only with one; `itself` for
   * an act that refuses it, because it may pass over the password.
   */
  hashes?: true | 'current' | 'password' | 'itself'
  /** Whether a failure is reported as that of a sign-in by password. */
  isSignInAttempt?: boolean
  /** The external provider of the sign-in as whose failure one is reported. */
  signInAt?: (request: FastifyRequest) => string
  /** Limits that count the request before its body is read; `mail` where mails are sent. */
  limits?: readonly LimitName[]
  /** The limit that counts it by what its body has. */
  bodyLimit?: LimitName | ((request: FastifyRequest, auth: AuthContext) => Promise<void>)
  /** The page of the link whose token the form sends, which shows the failures with that. */
  linkPage?: LinkPage
  /**
   * What the same request gets after it, in a new session: what the act would answer, and does
   * nothing of the act; default the user who is signed in, or nothing.
   */
  again?: (auth: AuthContext, submission: HashingSubmission<Values<Fields, Required>>) => Promise<FormAnswer>
  /** Whether it serves impersonations: it changes no account, or is a sign-in, which ends them. */
  whileImpersonating?: true
  /** Whether it needs `reply.elapsedTime`: Fastify measures it for this hook, or for a log. */
  needsElapsedTime?: boolean
}

export interface FormAnswer {
  /** The status and the body for JSON clients. */
  readonly status: number
  readonly body?: unknown
  /** Whether a link in a mail was used: see {@link RedirectPages.afterLink}. */
  readonly isLinkUsed?: boolean
  /** The mail that it asks for, which the page after it names. */
  readonly asked?: AskedMail
  /** Where browsers are redirected, in place of `next`. */
  readonly page?: string
  /** Query parameters of the page that browsers are redirected to. */
  readonly query?: Readonly<Record<string, string>>
  /** Answers browsers with a page in place of a redirect. */
  readonly show?: () => FastifyReply | Promise<FastifyReply>
}

export const ACCEPTED: FormAnswer = { status: 202 }
export const LINK_USED: FormAnswer = { status: 204, isLinkUsed: true }

export function signedInAs (principal: Principal, status = 200): FormAnswer {
  return { status, body: principal }
}

type Properties = Readonly<Record<string, object>>

type RouteShape = Omit<FormRoute<Properties, readonly string[]>, 'again'>

type Values<Fields extends Properties, Required extends readonly string[]> = Static<{
  type: 'object'
  properties: Fields & { next: typeof next, error_next: typeof errorNext }
  required: Required
}>

/** What a form does; without an answer, 204. */
type Run<SomeForm> = (auth: AuthContext, form: SomeForm) => Promise<FormAnswer | void>

export function form<const Fields extends Properties, const Required extends readonly string[] = []> (
  route: FormRoute<Fields, Required> & { hashes: unknown }, run: Run<HashingSubmission<Values<Fields, Required>>>
): Act
export function form<const Fields extends Properties, const Required extends readonly string[] = []> (
  route: FormRoute<Fields, Required> & { hashes?: never }, run: Run<Submission<Values<Fields, Required>>>
): Act
export function form<Fields extends Properties, Required extends readonly string[]> (
  route: FormRoute<Fields, Required>, run: Run<HashingSubmission<Values<Fields, Required>>>
): Act {
  return { when: route.when, mount: async mounting => mountForm(mounting, route, run) }
}

async function mountForm<Fields extends Properties, Required extends readonly string[]> (
  { scope, auth, failurePages }: Mounting, route: FormRoute<Fields, Required>,
  run: Run<HashingSubmission<Values<Fields, Required>>>
): Promise<void> {
  const { path, required, isSignInAttempt = false, needsElapsedTime = false, again, whileImpersonating } = route
  // Loaded with the forms that have one: it is made of pages.
  const failOnPage = route.linkPage && (await import('./pages/link-page.js')).mountLinkPage(scope, auth, route.linkPage)
  const needsToken = required?.includes('token') === true
  const fail = failureOn(auth, failurePages, route.signInAt ?? (isSignInAttempt ? () => 'local' : undefined))

  const { before, withBody } = checksOf(route, auth)

  auth.formPaths.set(path.slice(1), pathOf(auth, path.slice(1)))
  scope.post(path, {
    schema: schemaOf(route),
    ...(whileImpersonating && { config: WHILE_IMPERSONATING }),
    async onRequest (request) { if (!await wasSentBefore(request)) await before(request) },
    ...(needsElapsedTime && { onResponse: async () => {} }),
    async errorHandler (error, request, reply) {
      const isOfLink = needsToken || sentFields(request).token !== undefined
      return (failOnPage !== undefined && isOfLink ? failOnPage : fail)(error, request, reply)
    }
  }, async (request, reply) => {
    const submission: HashingSubmission<Values<Fields, Required>> = {
      request,
      reply,
      // The schema has checked them.
      fields: request.body as Values<Fields, Required>,
      get outbox () { return auth.mailer?.outbox(request, reply) ?? NO_MAILS },
      get passwords () { return needed(auth.passwords, 'local').passwordsFor({ request, reply }) }
    }
    const answer = await runOnce(auth, request, {
      async run () {
        await withBody(request)
        return await run(auth, submission) ?? DONE
      },
      again: next => again?.(auth, submission) ?? answerAgain(auth, route, { request, next })
    }, () => before(request))
    return send(auth, request, reply, answer)
  })
}

/** Returns what answers failures: on the page of the plugin that the form is on, if on one. */
function failureOn (auth: AuthContext, failurePages: Mounting['failurePages'], providerOf: RouteShape['signInAt']) {
  const { redirects } = auth
  return async (error: FastifyError, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const signInAt = providerOf?.(request)
    const { next, error_next: errorNext } = sentFields(request)
    const page = redirects.forError(request, errorNext)
    const url = page !== null && isOwnPath(page) && !wantsJson(request) ? new URL(page, ANY_ORIGIN) : null
    const ownPage = url === null ? undefined : failurePages.get(url.pathname)
    const step = await nextAuthenticationStep(auth, request, error, {
      next: redirects.asked(request, next), needing: redirects.ofStart(request, errorNext)
    })
    if (ownPage !== undefined && error.code === 'unauthenticated') {
      // The page again, behind the sign-in.
      const word = error.message === SENT_TWICE ? 'sent_twice' : error.code
      const login = redirects.loginWith(request, page)
      return answerFailure(auth, request, reply, error, { page: login ?? page, word, signInAt })
    }
    if (url !== null && ownPage !== undefined && (step === null || step.page === null)) {
      return ownPage(request, reply, recordFailure(request, reply, error, signInAt), url.searchParams)
    }
    // A page of the application that the form names shows that it lacks a recent sign-in.
    const isShown = error.code === 'reauthenticate' && ownPage === undefined &&
      redirects.asked(request, errorNext) !== null
    return answerFailure(auth, request, reply, error, {
      page, step: step !== null && isShown ? { ...step, page: null } : step, signInAt
    })
  }
}

/** Returns the usual answer of an act whose request is sent again. */
function answerAgain (
  { redirects }: Pick<AuthContext, 'redirects'>, { answers = { 204: done }, linkPage }: RouteShape,
  { request, next }: { request: FastifyRequest, next: string | null }
): FormAnswer {
  const [status = 204] = [200, 201, 204, 202].filter(status => status in answers)
  if (status === 204 && linkPage !== undefined) return LINK_USED
  const body = status > 201 ? undefined : principalOf(request)
  return { status, body, page: redirects.afterSuccess(request, sentFields(request).next ?? next) }
}

async function send (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply,
  { status, body, isLinkUsed = false, asked, page, query = {}, show }: FormAnswer
): Promise<FastifyReply> {
  if (wantsJson(request)) return reply.code(status).send(body)
  const { redirects } = auth
  const { next, done: word } = sentFields(request)
  const target = page ?? (isLinkUsed ? redirects.afterLink(request, next) : redirects.afterSuccess(request, next))
  keepNotice(auth, request, reply, { target, word, asked })
  // The page of a code has its own `next`.
  if (status === 202 && page === undefined) keepNextOfMail(auth, request, reply, target)
  if (isLinkUsed || status === 201) forgetMail(auth, request, reply)
  if (show !== undefined) return show()
  const url = Object.entries(query).reduce((page, [name, value]) => withParameter(page, name, value), target)
  const path = isOwnPath(url) ? pathnameOf(url) : null
  const provider = path === null ? null : startedProvider(auth, path)
  if (provider !== null) return (await import('./pages/lead-to.js')).leadToProvider(auth, reply, provider, url)
  // So that the browser fetches the page with GET (RFC 9110 section 15.4.4).
  return reply.redirect(url, 303)
}

/** What refuses a form: before its body is read, and by what its body has. */
function checksOf (
  { hashes, limits = [], bodyLimit }: RouteShape, auth: AuthContext
): Record<'before' | 'withBody', (request: FastifyRequest) => Promise<void>> {
  const { mail, ...others } = auth.limits
  const present: Partial<RateLimits> = auth.mailer === null ? others : auth.limits
  const counts = limits.flatMap(name => present[name] ?? [])
  const field = typeof hashes === 'string' && hashes !== 'itself' ? hashes : null
  const count = typeof bodyLimit === 'string' ? auth.limits[bodyLimit] : bodyLimit
  return {
    async before (request) {
      if (hashes === true) await auth.passwords?.refuseWhenBusy(request)
      for (const count of counts) await count(request)
    },
    async withBody (request) {
      const isHashed = field !== null && Boolean(sentFields(request)[field])
      if (isHashed) await auth.passwords?.refuseWhenBusy(request, true)
      await count?.(request, auth)
    }
  }
}

function schemaOf ({
  path, operationId = operationIdOf(path), summary, description, user, fields, required, allowsExtraFields = false,
  answers = { 204: done }, refuses = [], hashes, limits, bodyLimit
}: RouteShape): object {
  const isLimited = hashes !== undefined || limits !== undefined || bodyLimit !== undefined
  return {
    ...operation({
      summary,
      description,
      operationId,
      user,
      answers: { ...answers, 303: redirect },
      refuses: [
        'invalid_request', ...refuses, ...user === 'signed-in' ? ['unauthenticated'] as const : [], 'cross_origin',
        ...isLimited ? ['rate_limited', 'busy'] as const : [], 'unavailable'
      ]
    }),
    consumes: FORM_OR_JSON,
    body: {
      type: 'object',
      ...(required !== undefined && { required }),
      properties: { ...fields, next, error_next: errorNext },
      ...(allowsExtraFields && ownFields)
    }
  }
}

/** Fields of the application, for `onSignIn`. Bounded: bodies wait in memory for the hash. */
const ownFields = {
  description: 'At most 32 fields, with names of at most 256 characters',
  maxProperties: 32,
  propertyNames: { maxLength: 256 },
  additionalProperties: {
    type: ['string', 'number', 'boolean', 'null'],
    maxLength: 4096,
    description: 'Fields of the application'
  }
}

const DONE: FormAnswer = { status: 204 }

/** For an application that sends no mails. */
const NO_MAILS: Outbox = {
  refuseWhenFull () {}, delayOf: async () => Infinity, link () {}, code () {}, sendTo () {}, notice () {}, skip () {}
}
