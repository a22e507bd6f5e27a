import { type AuthContext, hasFactors, hasSecondFactor } from '../../context.js'
import { currentUser } from '../../current-user/current.js'
import { missingAuthentication } from '../../current-user/recent.js'
import { type UserFactor, listFactors } from '../../factors/factor-list.js'
import type { PasskeyUser } from '../../factors/passkey-ceremonies.js'
import { action, button, field, form, section } from '../../pages/form.js'
import { type Content, type Html, html } from '../../pages/html.js'
import { type PasskeyPaths, passkeyForm, passkeySignal } from '../../pages/passkey-form.js'
import { type Texts, dateIn, filled } from '../../pages/texts.js'
import { pathOf } from '../../web/act.js'
import { type Targets, page, redirected, withQuery } from '../../web/page.js'
import { maySendMailCode } from '../enrolment.js'
import { pathOfPage, signInPath } from './parts.js'
import { enrolPage } from './totp.js'

/** What the parts of the page show. */
interface FactorsView {
  readonly auth: AuthContext
  readonly texts: Texts
  /** Those of the user. */
  readonly own: readonly UserFactor[]
  /** Where forms go after a change. */
  readonly saved: Targets
}

/** The page on which the signed-in user sees and changes their factors. */
export const factors = page({ path: '/pages/factors', when: hasFactors }, async (auth, view) => {
  const { request, reply, texts, next, isLost } = view
  const { common, factors, confirm } = texts
  const here = pathOfPage(auth, 'factors', next)
  const present = await currentUser(auth, request)
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const ofLost = withQuery(pathOf(auth, 'pages/factors'), { next, lost: 'true' })
  const missing = missingAuthentication(auth, present)
  const mayLose = missing !== null && await maySendMailCode(auth, present)
  if (isLost && mayLose) {
    const targets = { next: here, error_next: ofLost, lost: 'true' }
    return enrolPage(auth, view, { targets, asksMailCode: true, back: here })
  }
  const own = await listFactors(auth.accounts, present.user.userId)
  const shown = { auth, texts, own, saved: { next: next ?? here, error_next: here, done: 'saved' } }
  const { passkeyPaths, factors: { passkeys }, pages: { application: { account } } } = auth
  const again = missing && auth.pages.forStep(request, 'reauthenticate', here, missing.length > 0)
  return {
    title: factors.title,
    script: passkeyPaths && passkeyPaths.script,
    content: [
      again && [html`<p>${factors.confirmText}</p>`, button(again, confirm.title)],
      mayLose && html`<p><a href="${ofLost}">${factors.lost}</a></p>`,
      appSection(shown),
      codesSection(shown),
      passkeys && passkeyPaths && passkeysSection(shown, passkeyPaths, passkeys.userDetails(present.user)),
      account && html`<section>${button(account, common.back)}</section>`
    ]
  }
})

function appSection ({ auth, texts, own, saved }: FactorsView): Content {
  const { account, factors } = texts
  const app = own.find(({ kind }) => kind === 'totp')
  const canChange = hasSecondFactor(auth)
  if (app === undefined) {
    return canChange && section(factors.app, action(pathOf(auth, 'local/totp/enroll'), saved, factors.setUp))
  }
  const label = filled(account.removeMethod, { provider: factors.app })
  return section(factors.app, html`<ul><li><span>${added(texts, app.createdAt)}</span>${
    canChange && action(pathOf(auth, 'local/totp/remove'), saved, account.remove, { label })}</li></ul>`)
}

function codesSection ({ auth, texts: { factors }, own, saved }: FactorsView): Content {
  const codes = own.find(({ kind }) => kind === 'recovery')
  return codes && section(factors.recoveryTitle, [
    html`<p>${filled(factors.codesLeft, { count: String(codes.codesLeft) })}</p>`,
    hasSecondFactor(auth) && [
      html`<p>${factors.newCodesText}</p>`, action(pathOf(auth, 'local/recovery-codes'), saved, factors.newCodes)
    ]
  ])
}

function passkeysSection (
  { auth, texts, own, saved }: FactorsView, { options }: PasskeyPaths, { rpId, userId, ...names }: PasskeyUser
): Html {
  const { language, account, factors } = texts
  const name = { name: 'name', label: factors.passkeyName, type: 'text', autocomplete: 'off' } as const
  const attributes = html` maxlength="64"`
  const passkeys = own.filter(({ kind }) => kind === 'passkey')
  const accepted = { rpId, userId, allAcceptedCredentialIds: passkeys.map(({ id }) => id) }
  const items = passkeys.map(({ id, name: given, createdAt, lastUsedAt }) => {
    const shown = given ?? id
    const label = filled(account.removeMethod, { provider: shown })
    return html`<li><span>${shown} <small>${added(texts, createdAt)}${
      lastUsedAt && html`. ${filled(account.lastUsed, { date: dateIn(language, lastUsedAt) })}`}</small></span>${
      action(pathOf(auth, 'local/passkeys/remove'), { ...saved, id }, account.remove, { label })}
<details><summary aria-label="${factors.rename}: ${shown}">${factors.rename}</summary>${form({
  action: pathOf(auth, 'local/passkeys/rename'),
  hidden: { ...saved, id },
  fields: field({ ...name, value: shown, attributes }),
  submit: account.nameSubmit
})}</details></li>`
  })
  return section(factors.passkeys, html`<p>${factors.passkeysText}</p>
${passkeySignal('all-accepted-credentials', accepted)}${
passkeySignal('current-user-details', { rpId, userId, ...names })}<ul>
${items}
</ul>
${passkeyForm(texts, {
  ceremony: 'register',
  options,
  action: pathOf(auth, 'local/passkeys/register'),
  hidden: saved,
  fields: field({ ...name, isOptional: true, attributes })
})}`)
}

function added ({ language, factors }: Texts, date: Date): string {
  return filled(factors.added, { date: dateIn(language, date) })
}
