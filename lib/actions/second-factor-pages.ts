/** The pages of second factors. */
import { type AuthContext, hasSecondFactor, needed } from '../context.js'
import { factorsOfUser } from '../current-user/methods.js'
import type { AuthError } from '../errors.js'
import { withError } from '../http/redirects.js'
import { type SecondFactorView, enrolPage, secondFactorPage, totpPage } from '../pages/factor-pages.js'
import type { Page } from '../pages/page-layout.js'
import { principalOf } from '../session/record.js'
import { type PendingSecondFactor, pendingSecondFactor } from '../sign-in/second-factor.js'
import { pathOf } from '../web/act.js'
import { nextAuthenticationStep } from '../web/answers.js'
import { type View, page, redirected, targetsOf, withQuery } from '../web/page.js'
import { isCodeMailed } from './enrolment.js'
import { finishSignIn, pendingTotp } from './second-factor.js'

/** Who sets up a factor, as far as pages are concerned. */
interface SettingUp {
  readonly waiting: PendingSecondFactor | null
  readonly asksMailCode: boolean
}

/** The page on which a user finishes a sign-in that waits, or sets up the factor that it needs. */
export const secondFactor = page({ path: '/local/second-factor', when: finishSignIn.when }, async (auth, view) => {
  const { request, reply, texts, next } = view
  const { pages, passkeyPaths } = auth
  const waiting = await pendingSecondFactor(auth, request)
  if (waiting === null) {
    // Another tab has finished the sign-in, or it has expired.
    const login = principalOf(request) === null ? pages.loginWith(request, next) : null
    return redirected(reply, login === null ? pages.afterSuccess(request, next) : withError(login, 'invalid_state'))
  }
  if (waiting.needs === 'enrolment') return beginPage(auth, view, { waiting, asksMailCode: waiting.asksMailCode })
  const kinds = await factorsOfUser(auth, waiting.userId)
  return secondFactorPage(texts, {
    action: pathOf(auth, 'local/second-factor'),
    targets: targetsOf(auth, 'local/second-factor', { next }),
    hasCode: kinds.some(kind => kind !== 'passkey'),
    trustDays: auth.factors.secondFactor?.trustedDays ?? null,
    passkey: kinds.includes('passkey') ? passkeyPaths : null,
    leave: leaveTo(auth)
  })
})

/** The page on which a user sets up an authenticator app. */
export const totp = page({ path: '/local/totp', when: hasSecondFactor }, async (auth, view) => {
  const { request, reply, texts, next, isLost } = view
  const here = withQuery(pathOf(auth, 'local/totp'), { next })
  const pending = await pendingTotp(auth, request, isLost).catch(async (error: unknown) => {
    const { code }: Partial<AuthError> = Object(error)
    const step = await nextAuthenticationStep(auth, request, error, { next: here, needing: here })
    const page = code === 'unauthenticated' ? auth.pages.loginWith(request, here) : step?.page ?? null
    if (page === null) throw error
    return { page }
  })
  if ('page' in pending) return redirected(reply, pending.page)
  const { enrolling, enrolment } = pending
  if (enrolment === null) return beginPage(auth, view, enrolling)
  const { uri, secret, svg } = enrolment
  return totpPage(texts, {
    ...setUp(auth, view, enrolling),
    action: pathOf(auth, 'local/totp/confirm'),
    svg,
    uri,
    secret: secret.replace(/.{4}(?!$)/g, '$& '),
    issuer: needed(auth.factors.secondFactor, 'secondFactor').issuer
  })
})

/** The page on which a user begins to set up their authenticator app, or adds a passkey. */
async function beginPage (auth: AuthContext, view: View, enrolling: SettingUp): Promise<Page> {
  const { passkeyPaths } = auth
  return enrolPage(view.texts, {
    ...setUp(auth, view, enrolling),
    action: pathOf(auth, 'local/totp/enroll'),
    passkey: passkeyPaths && { ...passkeyPaths, register: pathOf(auth, 'local/passkeys/register') },
    isMailed: passkeyPaths !== null && await isCodeMailed(view.request)
  })
}

/** What the pages share on which a user sets up their authenticator app. */
function setUp (auth: AuthContext, { request, next }: View, { waiting, asksMailCode }: SettingUp) {
  const lost = asksMailCode && waiting === null ? 'true' : null
  const leave = leaveTo(auth)
  return {
    targets: { ...targetsOf(auth, 'local/totp', { next, lost }), lost },
    isRequired: waiting !== null,
    asksMailCode,
    leave: waiting !== null ? leave : { ...leave, next: auth.pages.afterSuccess(request, next) }
  }
}

/** How a user leaves a sign-in that waits. */
function leaveTo (auth: AuthContext): SecondFactorView['leave'] {
  return { logout: pathOf(auth, 'logout'), next: auth.pages.application.login ?? auth.site.publicPath('/') }
}
