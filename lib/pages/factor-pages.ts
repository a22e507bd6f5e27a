import { section } from './account-page.js'
import { action, button, checkbox, codeField, field, form } from './form.js'
import { type Html, html } from './html.js'
import type { Page } from './look.js'
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
  const trust = trustDays === null
    ? null
    : checkbox('trust', filled(factors.trust, { time: timeIn(language, trustDays, 'day') }))
  const fields = [codeField('code', factors.code, 'text'), trust]
  return {
    title: factors.secondTitle,
    script: passkey && passkey.script,
    content: [
      hasCode ? html`<p>${factors.codeText}</p>` : null,
      hasCode ? form({ action, hidden, fields, submit: confirm.submit }) : null,
      passkey && passkeyForm(texts, {
        ceremony: 'factor',
        options: passkey.options,
        action,
        hidden,
        fields: hasCode ? [] : [trust],
        submit: factors.usePasskey
      }),
      passkey && passkeyHints(texts),
      leaving(texts, leave)
    ]
  }
}

/** What the page `totp` offers before an authenticator app is set up. */
export interface EnrolView extends Pick<SecondFactorView, 'action' | 'targets' | 'leave'> {
  /** Whether a sign-in waits for this. */
  readonly isRequired: boolean
  /** Null where passkeys are not mounted. */
  readonly passkey: EnrolPasskeyView | null
}

/** How the page `totp` offers a passkey in place of an authenticator app. */
export interface EnrolPasskeyView extends PasskeyPaths {
  readonly register: string
  /** Whether the user has to enter a code that is sent by e-mail, too. */
  readonly asksMailCode: boolean
  /** Whether it was sent. */
  readonly isMailed: boolean
}

/** The page on which a user begins to set up an authenticator app, or adds a passkey. */
export function enrolPage (texts: Texts, { action: path, targets, isRequired, passkey, leave }: EnrolView): Page {
  const { common, factors } = texts
  return {
    title: isRequired ? factors.requiredTitle : factors.setUp,
    script: passkey && passkey.script,
    content: [
      isRequired ? html`<p>${factors.requiredText}</p>` : null,
      action(path, targets, factors.setUp),
      passkey && enrolPasskey(texts, targets, passkey),
      isRequired ? leaving(texts, leave) : button(leave.next, common.back)
    ]
  }
}

function enrolPasskey (texts: Texts, targets: Targets, passkey: EnrolPasskeyView): Html {
  const { register, options, asksMailCode, isMailed } = passkey
  const { factors } = texts
  // The form that asks for the code begins a ceremony, which mails it, and leads back here.
  const begin = { next: targets.error_next, error_next: targets.error_next, for: 'register' }
  return html`${asksMailCode && !isMailed
    ? action(options, begin, factors.addPasskey)
    : passkeyForm(texts, {
      ceremony: 'register',
      options,
      action: register,
      hidden: targets,
      fields: [asksMailCode ? codeField('mailCode', factors.mailCode, 'numeric', factors.mailText) : null],
      submit: factors.addPasskey
    })}${passkeyHints(texts)}`
}

/** What the page `totp` shows. */
export interface TotpView extends Pick<SecondFactorView, 'action' | 'targets' | 'leave'> {
  /** The QR code of the URI; null where none can be drawn. */
  readonly svg: Html | null
  readonly uri: string
  /** In groups of four. */
  readonly secret: string
  readonly issuer: string
  /** Whether the user has to enter a code that was sent by e-mail, too. */
  readonly asksMailCode: boolean
  /** Whether a sign-in waits for this. */
  readonly isRequired: boolean
}

/** The page on which a user sets up an authenticator app. */
export function totpPage (texts: Texts, view: TotpView): Page {
  const { common, factors, confirm } = texts
  const { action, targets: hidden, svg, uri, secret, issuer, asksMailCode, isRequired, leave } = view
  const fields = [
    codeField('code', factors.appCode, 'numeric'),
    asksMailCode ? codeField('mailCode', factors.mailCode, 'numeric', factors.mailText) : null
  ]
  return {
    title: isRequired ? factors.requiredTitle : factors.setUp,
    content: [
      isRequired ? html`<p>${factors.requiredText}</p>` : null,
      html`<p>${filled(factors.appText, { issuer })}</p>`,
      svg && html`<div class="qr" role="img" aria-label="${factors.qrCode}">${svg}</div>`,
      html`<p><a href="${uri}">${factors.openApp}</a></p><p>${factors.key}<br><code dir="ltr">${secret}</code></p>`,
      form({ action, hidden, fields, submit: confirm.submit }),
      isRequired ? leaving(texts, leave) : button(leave.next, common.back)
    ]
  }
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

/** The passkeys of a user. */
export interface PasskeysView extends PasskeyPaths {
  readonly user: PasskeyUser
  readonly list: ReadonlyArray<{
    readonly id: string, readonly name: string, readonly createdAt: Date, readonly usedAt: Date | null
  }>
  readonly paths: Readonly<Record<'register' | 'rename' | 'remove', string>>
}

/** What the page `factors` shows. Paths are null for what is not mounted or not allowed. */
export interface FactorsView {
  /** When the user added their authenticator app; null for a user without one. */
  readonly appAddedAt: Date | null
  /** How many recovery codes are left; null for a user who cannot have any. */
  readonly codesLeft: number | null
  /** Null where passkeys are not mounted. */
  readonly passkeys: PasskeysView | null
  /** Where the user signs in again; null while the last sign-in is recent. */
  readonly confirm: string | null
  readonly account: string | null
  /** Where forms go after a change. */
  readonly saved: Targets
  readonly paths: Readonly<Record<'enrol' | 'removeApp' | 'newCodes', string | null>>
}

/** The page on which a user sees and changes their second factors and passkeys. */
export function factorsPage (texts: Texts, view: FactorsView): Page {
  const { common, factors, confirm } = texts
  const { passkeys, account, saved } = view
  return {
    title: factors.title,
    script: passkeys && passkeys.script,
    content: [
      view.confirm === null ? null : html`<p>${factors.confirmText}</p>${button(view.confirm, confirm.title)}`,
      appSection(texts, view),
      codesSection(texts, view),
      passkeys && passkeysSection(texts, passkeys, saved),
      account === null ? null : html`<section>${button(account, common.back)}</section>`
    ]
  }
}

function appSection (texts: Texts, { appAddedAt, saved, paths: { enrol, removeApp } }: FactorsView): Html | null {
  const { account, factors } = texts
  if (appAddedAt === null) return enrol === null ? null : section(factors.app, action(enrol, saved, factors.setUp))
  const label = filled(account.removeMethod, { provider: factors.app })
  return section(factors.app, html`<ul><li><span>${added(texts, appAddedAt)}</span>${
    removeApp === null ? null : action(removeApp, saved, account.remove, { label })}</li></ul>`)
}

function codesSection ({ factors }: Texts, { codesLeft, saved, paths: { newCodes } }: FactorsView): Html | null {
  if (codesLeft === null) return null
  return section(factors.recoveryTitle, html`<p>${filled(factors.codesLeft, { count: String(codesLeft) })}</p>${
    newCodes === null ? null : html`<p>${factors.newCodesText}</p>${action(newCodes, saved, factors.newCodes)}`}`)
}

function passkeysSection (texts: Texts, { user, list, options, paths }: PasskeysView, saved: Targets): Html {
  const { language, account, factors } = texts
  const name = { name: 'name', label: factors.passkeyName, type: 'text', autocomplete: 'off' } as const
  const attributes = html` maxlength="64"`
  const { rpId, userId } = user
  const accepted = { rpId, userId, allAcceptedCredentialIds: list.map(({ id }) => id) }
  return section(factors.passkeys, html`<p>${factors.passkeysText}</p>
${passkeySignal('all-accepted-credentials', accepted)}${passkeySignal('current-user-details', { ...user })}<ul>
${list.map(({ id, name: shown, createdAt, usedAt }) => html`<li><span>${shown} <small>${added(texts, createdAt)}${
  usedAt && html`. ${filled(account.lastUsed, { date: dateIn(language, usedAt) })}`}</small></span>${
  action(paths.remove, { ...saved, id }, account.remove, { label: filled(account.removeMethod, { provider: shown }) })}
<details><summary aria-label="${factors.rename}: ${shown}">${factors.rename}</summary>${form({
  action: paths.rename,
  hidden: { ...saved, id },
  fields: [field({ ...name, value: shown, attributes })],
  submit: account.nameSubmit
})}</details></li>`)}
</ul>
${passkeyForm(texts, {
  ceremony: 'register',
  options,
  action: paths.register,
  hidden: saved,
  fields: [field({ ...name, isOptional: true, attributes })],
  submit: factors.addPasskey
})}${passkeyHints(texts)}`)
}

function added ({ language, factors }: Texts, date: Date): string {
  return filled(factors.added, { date: dateIn(language, date) })
}

function leaving ({ confirm }: Texts, { logout, next }: SecondFactorView['leave']): Html {
  return action(logout, { next }, confirm.signOut, { isDanger: true })
}
