import { action, button, checkbox, codeField, field, form, section } from './form.js'
import { type Content, Html, html } from './html.js'
import type { Page } from './page-layout.js'
import { type PasskeyPaths, type PasskeyUser, passkeyForm, passkeyHints, passkeySignal } from './passkey-form.js'
import type { Targets } from './sign-in-pages.js'
import { type Texts, dateIn, filled, timeIn } from './texts.js'

/** What the page `second-factor` offers. */
export interface SecondFactorView {
  readonly action: string
  readonly targets: Targets
  /** Whether the user has an authenticator app or recovery codes. */
  readonly hasCode: boolean
  /** For how many days the user can trust the browser; null where they cannot. */
  readonly trustDays: number | null
  /** Null for a user without passkeys. */
  readonly passkey: PasskeyPaths | null
  /** Where the form goes that ends the sign-in, and the page after that. */
  readonly leave: { readonly logout: string, readonly next: string }
}

/** The page on which a user completes a sign-in with a second factor. */
export function secondFactorPage (texts: Texts, view: SecondFactorView): Page {
  const { language, factors, confirm } = texts
  const { action, targets: hidden, hasCode, trustDays, passkey, leave } = view
  const trust = trustDays !== null &&
    checkbox('trust', filled(factors.trust, { time: timeIn(language, trustDays, 'day') }))
  const fields = [codeField('code', factors.code, 'text'), trust]
  return {
    title: factors.secondTitle,
    script: passkey && passkey.script,
    content: [
      hasCode && [html`<p>${factors.codeText}</p>`, form({ action, hidden, fields, submit: confirm.submit })],
      passkey && passkeyForm(texts, {
        ceremony: 'factor', options: passkey.options, action, hidden, fields: !hasCode && trust
      }),
      leaving(texts, leave)
    ]
  }
}

/** A page on which a user sets up their authenticator app. */
interface SetUpView extends Pick<SecondFactorView, 'action' | 'targets' | 'leave'> {
  /** Whether a sign-in waits for this. */
  readonly isRequired: boolean
  /** Whether the user has to enter a code that is sent by e-mail, too. */
  readonly asksMailCode: boolean
}

/** What the page `totp` offers before an authenticator app is set up. */
export interface EnrolView extends Omit<SetUpView, 'action'> {
  /** Null where authenticator apps are not mounted. */
  readonly action: string | null
  /** Null where passkeys are not mounted. */
  readonly passkey: PasskeyPaths & { readonly register: string } | null
  /** Whether the code was sent by e-mail. */
  readonly isMailed: boolean
}

/** The page on which a user begins to set up an authenticator app, or adds a passkey. */
export function enrolPage (texts: Texts, view: EnrolView): Page {
  const { action: path, targets, passkey } = view
  return {
    script: passkey && passkey.script,
    ...setUpPage(texts, view, [path && action(path, targets, texts.factors.setUp), enrolPasskey(texts, view)])
  }
}

function enrolPasskey (texts: Texts, { targets, passkey, asksMailCode, isMailed }: EnrolView): Content {
  if (passkey === null) return null
  const { register, options } = passkey
  const fields = asksMailCode && mailCodeField(texts)
  if (!asksMailCode || isMailed) {
    return passkeyForm(texts, { ceremony: 'register', options, action: register, hidden: targets, fields })
  }
  // The form that asks for the code begins a ceremony, which mails it, and leads back here.
  const begin = { ...targets, next: targets.error_next, for: 'register' }
  return [action(options, begin, texts.factors.addPasskey), passkeyHints(texts)]
}

function mailCodeField ({ factors }: Texts): Html {
  return codeField('mailCode', factors.mailCode, 'numeric', factors.mailText)
}

function setUpPage (
  texts: Texts, { isRequired, leave }: Pick<SetUpView, 'isRequired' | 'leave'>, content: Content
): Page {
  const { common, factors } = texts
  return {
    title: isRequired ? factors.requiredTitle : factors.setUp,
    content: [
      isRequired && html`<p>${factors.requiredText}</p>`,
      content,
      isRequired ? leaving(texts, leave) : button(leave.next, common.back)
    ]
  }
}

/** What the page `totp` shows. */
export interface TotpView extends SetUpView {
  /** The QR code of the URI; null where none can be drawn. */
  readonly svg: string | null
  readonly uri: string
  /** In groups of four. */
  readonly secret: string
  readonly issuer: string
}

/** The page on which a user sets up an authenticator app. */
export function totpPage (texts: Texts, view: TotpView): Page {
  const { factors, confirm } = texts
  const { action, targets: hidden, svg, uri, secret, issuer, asksMailCode } = view
  const fields = [codeField('code', factors.appCode, 'numeric'), asksMailCode && mailCodeField(texts)]
  return setUpPage(texts, view, [
    html`<p>${filled(factors.appText, { issuer })}</p>`,
    // Made by uqr of what we have made.
    svg && html`<div class="qr" role="img" aria-label="${factors.qrCode}">${new Html(svg)}</div>`,
    html`<p><a href="${uri}">${factors.openApp}</a></p><p>${factors.key}<br><code dir="ltr">${secret}</code></p>`,
    form({ action, hidden, fields, submit: confirm.submit })
  ])
}

/** The page that shows the recovery codes of a user, once. */
export function recoveryCodesPage (
  { common, factors }: Texts, { codes, next }: { codes: readonly string[], next: string }
): Page {
  return {
    title: factors.recoveryTitle,
    content: [
      html`<p>${factors.recoveryText}</p>`,
      html`<ul class="codes">${codes.map(code => html`<li><code dir="ltr">${code}</code></li>`)}</ul>`,
      button(next, common.continue)
    ]
  }
}

/** How the page `factors` offers passkeys. */
export interface PasskeysView extends PasskeyPaths {
  readonly user: PasskeyUser
  readonly paths: Readonly<Record<'register' | 'rename' | 'remove', string>>
}

/** A factor of the user. */
interface ShownFactor {
  readonly id: string
  readonly kind: string
  readonly name: string | null
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
  readonly codesLeft: number | null
}

/** What the page `factors` shows. Paths are null for what is not mounted or not allowed. */
export interface FactorsView {
  /** Those of the user. */
  readonly factors: readonly ShownFactor[]
  /** Null where passkeys are not mounted. */
  readonly passkeys: PasskeysView | null
  /** Where the user signs in again; null while the last sign-in is recent. */
  readonly confirm: string | null
  /** Where a user goes on who has lost all their passkeys; null where no mailed code stands in. */
  readonly lost: string | null
  readonly account: string | null
  /** Where forms go after a change. */
  readonly saved: Targets
  readonly paths: Readonly<Record<'enrol' | 'removeApp' | 'newCodes', string | null>>
}

/** The page on which a user sees and changes their second factors and passkeys. */
export function factorsPage (texts: Texts, view: FactorsView): Page {
  const { common, factors, confirm } = texts
  const { passkeys, account } = view
  return {
    title: factors.title,
    script: passkeys && passkeys.script,
    content: [
      view.confirm && [html`<p>${factors.confirmText}</p>`, button(view.confirm, confirm.title)],
      view.lost && html`<p><a href="${view.lost}">${factors.lost}</a></p>`,
      appSection(texts, view),
      codesSection(texts, view),
      passkeys && passkeysSection(texts, view, passkeys),
      account && html`<section>${button(account, common.back)}</section>`
    ]
  }
}

function appSection (texts: Texts, { factors: own, saved, paths: { enrol, removeApp } }: FactorsView): Content {
  const { account, factors } = texts
  const app = own.find(({ kind }) => kind === 'totp')
  if (app === undefined) return enrol && section(factors.app, action(enrol, saved, factors.setUp))
  const label = filled(account.removeMethod, { provider: factors.app })
  return section(factors.app, html`<ul><li><span>${added(texts, app.createdAt)}</span>${
    removeApp && action(removeApp, saved, account.remove, { label })}</li></ul>`)
}

function codesSection ({ factors }: Texts, { factors: own, saved, paths: { newCodes } }: FactorsView): Content {
  const codes = own.find(({ kind }) => kind === 'recovery')
  return codes && section(factors.recoveryTitle, [
    html`<p>${filled(factors.codesLeft, { count: String(codes.codesLeft) })}</p>`,
    newCodes && [html`<p>${factors.newCodesText}</p>`, action(newCodes, saved, factors.newCodes)]
  ])
}

function passkeysSection (
  texts: Texts, { factors: own, saved }: FactorsView, { user, options, paths }: PasskeysView
): Html {
  const { language, account, factors } = texts
  const name = { name: 'name', label: factors.passkeyName, type: 'text', autocomplete: 'off' } as const
  const attributes = html` maxlength="64"`
  const { rpId, userId } = user
  const list = own.filter(({ kind }) => kind === 'passkey').map(({ name, ...factor }) => ({
    ...factor, name: name ?? factor.id
  }))
  const accepted = { rpId, userId, allAcceptedCredentialIds: list.map(({ id }) => id) }
  return section(factors.passkeys, html`<p>${factors.passkeysText}</p>
${passkeySignal('all-accepted-credentials', accepted)}${passkeySignal('current-user-details', { ...user })}<ul>
${list.map(({ id, name: shown, createdAt, lastUsedAt }) => html`<li><span>${shown} <small>${added(texts, createdAt)}${
  lastUsedAt && html`. ${filled(account.lastUsed, { date: dateIn(language, lastUsedAt) })}`}</small></span>${
  action(paths.remove, { ...saved, id }, account.remove, { label: filled(account.removeMethod, { provider: shown }) })}
<details><summary aria-label="${factors.rename}: ${shown}">${factors.rename}</summary>${form({
  action: paths.rename,
  hidden: { ...saved, id },
  fields: field({ ...name, value: shown, attributes }),
  submit: account.nameSubmit
})}</details></li>`)}
</ul>
${passkeyForm(texts, {
  ceremony: 'register',
  options,
  action: paths.register,
  hidden: saved,
  fields: field({ ...name, isOptional: true, attributes })
})}`)
}

function added ({ language, factors }: Texts, date: Date): string {
  return filled(factors.added, { date: dateIn(language, date) })
}

function leaving ({ confirm }: Texts, { logout, next }: SecondFactorView['leave']): Html {
  return action(logout, { next }, confirm.signOut, { isDanger: true })
}
