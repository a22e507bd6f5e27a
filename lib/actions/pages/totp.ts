import { type AuthContext, hasSecondFactor, needed } from '../../context.js'
import type { AuthError } from '../../errors.js'
import { withQuery } from '../../http/redirects.js'
import { action, button, codeField, form, ways } from '../../pages/form.js'
import { type Content, Html, html } from '../../pages/html.js'
import type { Page } from '../../pages/page-layout.js'
import { passkeyForm, passkeyHints } from '../../pages/passkey-form.js'
import { type Texts, sentence } from '../../pages/texts.js'
import { pathOf } from '../../web/act.js'
import { nextAuthenticationStep } from '../../web/answers.js'
import { type Targets, type View, page, redirected, targetsOf } from '../../web/page.js'
import { type EnrollingUser, isCodeMailed } from '../enrolment.js'
import { pendingTotp } from '../totp.js'

interface SetUp {
  readonly targets: Targets
  /** Whether the user has to enter a code that is sent by e-mail, too. */
  readonly asksMailCode: boolean
  /** The page to go back to; null where a sign-in waits for the factor. */
  readonly back: string | null
}

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
  const { enrolling, app } = pending
  const setUp = setUpOf(auth, view, enrolling)
  if (app === null) return enrolPage(auth, view, setUp)
  const { uri, secret, svg } = app
  const { issuer } = needed(auth.factors.secondFactor, 'secondFactor')
  const { factors, confirm } = texts
  const key = secret.replace(/.{4}(?!$)/g, '$& ')
  return setUpPage(auth, texts, setUp, [
    html`<p>${sentence(factors.appText, { issuer })}</p>`,
    // Made by uqr of what we have made.
    svg && html`<div class="qr" role="img" aria-label="${factors.qrCode}">${new Html(svg)}</div>`,
    html`<p><a href="${uri}">${factors.openApp}</a></p>
<p>${factors.key}<br><code dir="ltr" translate="no">${key}</code></p>`,
    form({
      action: pathOf(auth, 'local/totp/confirm'),
      hidden: { ...setUp.targets, done: 'saved' },
      fields: [codeField('code', factors.appCode, 'numeric'), setUp.asksMailCode && mailCodeField(texts)],
      submit: confirm.submit
    })
  ])
})

/** The page on which a user begins to set up an authenticator app, or adds a passkey. */
export async function enrolPage (auth: AuthContext, { request, texts }: View, setUp: SetUp): Promise<Page> {
  const { passkeyPaths } = auth
  const isMailed = passkeyPaths !== null && await isCodeMailed(request)
  const { script, options } = passkeyPaths ?? { script: null, options: null }
  const page = setUpPage(auth, texts, setUp, ways(
    texts.signIn.or,
    hasSecondFactor(auth) && action(pathOf(auth, 'local/totp/enroll'), setUp.targets, texts.factors.setUp),
    options && passkeyPart(auth, texts, { ...setUp, options, isMailed })
  ))
  return { script, ...page }
}

function passkeyPart (
  auth: AuthContext,
  texts: Texts,
  { targets, asksMailCode, options, isMailed }: SetUp & { options: string, isMailed: boolean }
): Content {
  if (asksMailCode && !isMailed) {
    // The form that asks for the code begins a ceremony, which mails it, and leads back here.
    const begin = { ...targets, next: targets.error_next, for: 'register' }
    return [action(options, begin, texts.factors.addPasskey), passkeyHints(texts)]
  }
  const register = pathOf(auth, 'local/passkeys/register')
  const fields = asksMailCode && mailCodeField(texts)
  return passkeyForm(texts, { ceremony: 'register', options, action: register, hidden: targets, fields })
}

export function setUpOf (
  auth: AuthContext, { request, next }: View, { waiting, asksMailCode }: Pick<EnrollingUser, 'waiting' | 'asksMailCode'>
): SetUp {
  const lost = asksMailCode && waiting === null ? 'true' : null
  return {
    targets: { ...targetsOf(auth, 'local/totp', { next, lost }), lost },
    asksMailCode,
    back: waiting === null ? auth.pages.afterSuccess(request, next) : null
  }
}

function setUpPage (auth: AuthContext, texts: Texts, { back }: SetUp, content: Content): Page {
  const { common, factors } = texts
  return {
    title: back === null ? factors.requiredTitle : factors.setUp,
    content: [
      back === null && html`<p>${factors.requiredText}</p>`,
      content,
      back === null ? leaveForm(auth, texts) : button(back, common.back)
    ]
  }
}

/** The form by which a user leaves a sign-in that waits, or goes on as another one. */
export function leaveForm (
  auth: AuthContext, { confirm }: Texts, next = auth.pages.application.login ?? auth.site.publicPath('/')
): Html {
  return html`<section>${action(pathOf(auth, 'logout'), { next }, confirm.signOut, { look: 'quiet' })}</section>`
}

function mailCodeField ({ factors }: Texts): Html {
  return codeField('mailCode', factors.mailCode, 'numeric', factors.mailText)
}
