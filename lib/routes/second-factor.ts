/** The routes of second factors. They are loaded only with the options for factors. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type EnrollingUser, type FactorChanges, beginTotp, confirmTotp, isCodeMailed, pendingTotp, removeTotp,
  renewRecoveryCodes
} from '../flows/enrolment.js'
import { factorsOfUser } from '../flows/methods.js'
import type { PasskeyRules } from '../flows/passkeys.js'
import { type PendingSecondFactor, finishByCode, pendingSecondFactor } from '../sign-in/second-factor.js'
import type { FactorSignInRules, StepRules } from '../flows/sign-in-rules.js'
import { AuthError } from '../errors.js'
import { withError } from '../http/redirects.js'
import { expireDuplicates } from '../session/cookie-scopes.js'
import { cookiesNamed } from '../session/cookie.js'
import { principalOf } from '../session/record.js'
import type { User } from '../accounts/account.js'
import { enrolPage, recoveryCodesPage, secondFactorPage, totpPage } from '../pages/factor-pages.js'
import type { Page } from '../pages/page-layout.js'
import type { Targets } from '../pages/sign-in-pages.js'
import { nextAuthenticationStep } from './answers.js'
import type { PagesContext } from './context.js'
import { type FormAnswer, mountForm } from './form-route.js'
import type { Limit } from './limits.js'
import { type View, mountPage, redirected, withQuery } from './page-route.js'
import {
  checkbox, factorCode, isChecked, lost, lostPasskeysIn, mailCode, passkeyResponse, signedIn
} from './schema-parts.js'

const recoveryCodes = {
  type: 'object',
  description: 'The recovery codes: no other answer contains them',
  required: ['recoveryCodes'],
  properties: { recoveryCodes: { type: 'array', items: { type: 'string' } } }
} as const

/** What the routes work with: null without the option. */
interface OfFactors {
  readonly rules: FactorSignInRules
  readonly ofCodes: FactorChanges & StepRules | null
  readonly ofPasskeys: PasskeyRules | null
  /** Counts what has the form of a response. */
  readonly countResponse: Limit
}

/** Mounts what finishes a sign-in by a second factor, and what sets up authenticator apps. */
export function mountSecondStep (
  context: PagesContext, { rules, ofCodes, ofPasskeys: passkeys, countResponse }: OfFactors
): void {
  const { site, pathOf, pages, limits, look, passkeyPaths } = context
  const { trustedBrowsers, trustedDays = null } = rules.factors.secondFactor ?? {}

  /** Where the forms of a page lead: after a success to `next`, after a failure to the page. */
  const targetsOf = (page: string, next: string | null, lost: string | null = null): Targets => ({
    next, error_next: withQuery(pathOf(page), { next, lost })
  })
  const leave = { logout: pathOf('logout'), next: pages.application.login ?? site.publicPath('/') }

  /** What the pages share on which a user sets up their authenticator app. */
  const setUp = ({ request, next }: View, { waiting, asksMailCode }: SettingUp) => {
    const lost = asksMailCode && waiting === null ? 'true' : null
    return {
      targets: { ...targetsOf('local/totp', next, lost), lost },
      isRequired: waiting !== null,
      asksMailCode,
      leave: waiting !== null ? leave : { ...leave, next: pages.afterSuccess(request, next) }
    }
  }

  /** The page on which a user begins to set up their authenticator app. */
  const beginPage = async (view: View, enrolling: SettingUp): Promise<Page> => enrolPage(view.texts, {
    ...setUp(view, enrolling),
    action: pathOf('local/totp/enroll'),
    passkey: passkeyPaths && { ...passkeyPaths, register: pathOf('local/passkeys/register') },
    isMailed: passkeyPaths !== null && await isCodeMailed(view.request)
  })

  mountPage(context, { path: 'local/second-factor', name: 'second-factor' }, async view => {
    const { request, reply, texts, next } = view
    const waiting = await pendingSecondFactor(request, rules)
    if (waiting === null) {
      // Another tab has finished the sign-in, or it has expired.
      const login = principalOf(request) === null ? pages.loginWith(request, next) : null
      return redirected(reply, login === null ? pages.afterSuccess(request, next) : withError(login, 'invalid_state'))
    }
    if (waiting.needs === 'enrolment') return beginPage(view, { waiting, asksMailCode: waiting.asksMailCode })
    const kinds = await factorsOfUser(rules.store, rules.factors, waiting.userId)
    return secondFactorPage(texts, {
      action: pathOf('local/second-factor'),
      targets: targetsOf('local/second-factor', next),
      hasCode: kinds.some(kind => kind !== 'passkey'),
      trustDays: trustedDays,
      passkey: kinds.includes('passkey') ? passkeyPaths : null,
      leave
    })
  })

  mountForm(context, {
    path: '/local/second-factor',
    summary: 'Finish a sign-in by a second factor',
    description: 'The sign-in waits in this session for ten minutes, and takes five codes.',
    user: 'anyone',
    fields: {
      code: factorCode,
      response: passkeyResponse,
      trust: { ...checkbox, description: 'A checkbox: this browser is not asked again for some days' }
    },
    answers: { 200: withCodesLeft },
    refuses: ['invalid_code', 'invalid', 'invalid_state', 'blocked', 'unauthenticated'],
    bodyLimit: async request => (Object(request.body).code === undefined ? countResponse : limits.factor)(request),
    isSignInAttempt: true
  }, async ({ request, reply, fields: { code, response, trust }, outbox }) => {
    const finish = async () => {
      if (code !== undefined && ofCodes !== null) return finishByCode(request, ofCodes, code, outbox)
      if (response === undefined || passkeys === null) throw new AuthError('invalid_request')
      const { finishByPasskey } = await import('../flows/passkeys.js')
      return finishByPasskey(request, passkeys, response, outbox)
    }
    const { principal, user, recoveryCodesLeft: left } = await finish()
    if (isChecked(trust)) await trustBrowser(request, reply, user)
    return {
      status: 200,
      body: { ...principal, ...(left !== null && { recoveryCodesLeft: left }) },
      ...(left !== null && left <= FEW_CODES && { query: { recovery_codes_left: String(left) } })
    }
  })

  /** Sets the cookie by which the browser is not asked again, beside that of the session. */
  async function trustBrowser (request: FastifyRequest, reply: FastifyReply, user: User): Promise<void> {
    if (trustedBrowsers === undefined) return
    const { cookieName } = trustedBrowsers
    const trusted = await trustedBrowsers.trust(cookiesNamed(request, cookieName), user)
    if (trusted === null) return
    const { value, maxAge, replacesSeveral } = trusted
    const { path = '/', domain, secure } = request.session.cookie
    if (replacesSeveral) expireDuplicates(reply, cookieName, { path, domain })
    reply.setCookie(cookieName, value, {
      path, httpOnly: true, sameSite: 'lax', secure: secure === true, maxAge, ...(domain && { domain })
    })
  }

  if (ofCodes === null) return
  const { issuer } = ofCodes.factors.secondFactor

  mountPage(context, { path: 'local/totp', name: 'totp' }, async view => {
    const { request, reply, texts, next, isLost } = view
    const here = withQuery(pathOf('local/totp'), { next })
    const pending = await pendingTotp(request, ofCodes, isLost).catch(async (error: unknown) => {
      const { code }: Partial<AuthError> = Object(error)
      const step = await nextAuthenticationStep(error, request, context, { next: here, needing: here })
      const page = code === 'unauthenticated' ? pages.loginWith(request, here) : step?.page ?? null
      if (page === null) throw error
      return { page }
    })
    if ('page' in pending) return redirected(reply, pending.page)
    const { enrolling, enrolment } = pending
    if (enrolment === null) return beginPage(view, enrolling)
    const { uri, secret, svg } = enrolment
    return totpPage(texts, {
      ...setUp(view, enrolling),
      action: pathOf('local/totp/confirm'),
      svg,
      uri,
      secret: secret.replace(/.{4}(?!$)/g, '$& '),
      issuer
    })
  })

  mountForm(context, {
    path: '/local/totp/enroll',
    summary: 'Begin to set up an authenticator app',
    description: 'The last authentication must be less than ten minutes old, by a factor of the user if they have ' +
      'one. Nothing changes until a code confirms it.',
    user: 'signed-in-or-not',
    fields: { lost },
    answers: { 200: enrolmentBody },
    refuses: ['unauthenticated', 'reauthenticate', 'invalid_state', 'blocked'],
    limits: [limits.factor]
  }, async ({ request, fields: { next = null, lost }, outbox }) => {
    const isLost = isChecked(lost)
    const page = withQuery(pathOf('local/totp'), { next, lost: isLost ? 'true' : null })
    return { status: 200, body: await beginTotp(request, ofCodes, { isLost, outbox }), page }
  })

  mountForm(context, {
    path: '/local/totp/confirm',
    summary: 'Confirm an authenticator app by its first code',
    description: 'All other sessions of the user end. A sign-in that waits for it is finished.',
    user: 'signed-in-or-not',
    fields: { code: factorCode, lost, mailCode },
    required: ['code'],
    answers: { 200: recoveryCodes },
    refuses: ['unauthenticated', 'reauthenticate', 'invalid_code', 'invalid_state', 'blocked'],
    limits: [limits.factor],
    isSignInAttempt: true
  }, async form => {
    const { request, fields: { code, ...ofLost }, outbox } = form
    return shown(form, await confirmTotp(request, ofCodes, { code, ...lostPasskeysIn(ofLost), outbox }))
  })

  mountForm(context, {
    path: '/local/totp/remove',
    summary: 'Remove the authenticator app of the signed-in user',
    description: 'The last second factor must be less than ten minutes old. All other sessions of the user end.',
    user: 'signed-in',
    fields: {},
    refuses: ['reauthenticate', 'invalid_state', 'forbidden', 'not_found']
  }, async ({ request, outbox }) => removeTotp(request, ofCodes, outbox))

  mountForm(context, {
    path: '/local/recovery-codes',
    summary: 'Replace the recovery codes of the signed-in user',
    description: 'The last second factor must be less than ten minutes old. All other sessions of the user end.',
    user: 'signed-in',
    fields: {},
    answers: { 200: recoveryCodes },
    refuses: ['reauthenticate', 'invalid_state', 'second_factor_missing']
  }, async form => shown(form, await renewRecoveryCodes(form.request, ofCodes, form.outbox)))

  /** Answers with recovery codes: browsers get a page that shows them. */
  function shown (
    { request, reply, fields: { next } }: { request: FastifyRequest, reply: FastifyReply, fields: { next?: string } },
    recoveryCodes: readonly string[]
  ): FormAnswer {
    return {
      status: 200,
      body: { recoveryCodes },
      show: () => look.send(reply, recoveryCodesPage(look.textsFor(request), {
        codes: recoveryCodes, next: pages.afterSuccess(request, next)
      }))
    }
  }
}

/** Who sets up a factor, as far as pages are concerned. */
type SettingUp = Pick<EnrollingUser, 'asksMailCode'> & { readonly waiting: PendingSecondFactor | null }

/** With so many recovery codes left, browsers are told how many. */
const FEW_CODES = 2

const withCodesLeft = {
  ...signedIn,
  properties: {
    ...signedIn.properties,
    recoveryCodesLeft: { type: 'integer', description: 'After a recovery code: how many the user has left' }
  }
} as const

const enrolmentBody = {
  type: 'object',
  description: 'What the authenticator app is given',
  required: ['uri', 'secret', 'svg'],
  properties: {
    uri: { type: 'string', description: 'An otpauth: URI' },
    secret: { type: 'string', description: 'Base32' },
    svg: { type: ['string', 'null'], description: 'The URI as a QR code; null without the package uqr, or if too long' }
  }
} as const
