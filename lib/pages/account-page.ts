import { deviceOf } from './device.js'
import { action, button, currentPassword, field, form, nameField, newPassword, username } from './form.js'
import { type Html, html } from './html.js'
import type { Page } from './page-layout.js'
import { type PasskeyUser, passkeySignal } from './passkey-form.js'
import type { OfferedProvider, Targets } from './sign-in-pages.js'
import { type Texts, dateIn, filled } from './texts.js'

/** A sign-in method of the user. */
export interface ShownMethod {
  /** The name of the provider, or `local`. */
  readonly provider: string
  /** How the user calls the provider; null for the password. */
  readonly label: string | null
  /** The e-mail of the identity. */
  readonly email: string | null
}

/** An open session of the user. */
export interface ShownSession {
  readonly id: string
  readonly current: boolean
  readonly lastSeenAt: Date
  readonly userAgent: string | null
}

/** What the page `account` shows. Paths are null for what is not mounted. */
export interface AccountView {
  readonly user: { readonly name: string | null, readonly email: string | null, readonly isVerified: boolean }
  readonly hasPassword: boolean
  readonly minLength: number
  readonly methods: readonly ShownMethod[]
  /** Providers that the user can add. */
  readonly others: readonly OfferedProvider[]
  /** Null where the sessions are not listed. */
  readonly sessions: readonly ShownSession[] | null
  /** The page `factors`; null where it is not mounted. */
  readonly factors: string | null
  /** What the script tells password managers; null for a user without passkeys. */
  readonly passkeys: { readonly user: PasskeyUser, readonly script: string } | null
  /** Where forms go after a change. */
  readonly saved: Targets
  /** Where forms go after a mail was sent. */
  readonly sent: Targets
  /** Where the form goes that signs the user out. */
  readonly left: Targets
  readonly paths: Readonly<Record<AccountAction, string | null>>
}

/** The forms of the page. */
export type AccountAction =
  'rename' | 'removeMethod' | 'changeEmail' | 'verifyEmail' | 'changePassword' | 'setPassword' | 'endSession' |
  'deleteAccount' | 'logout'

/** The page on which a user sees and changes their account. */
export function accountPage (texts: Texts, view: AccountView): Page {
  const { common, account, factors } = texts
  const { passkeys, left, paths: { logout } } = view
  return {
    title: account.title,
    script: passkeys && passkeys.script,
    content: [
      passkeys && passkeySignal('current-user-details', { ...passkeys.user }),
      nameSection(texts, view),
      emailSection(texts, view),
      passwordSection(texts, view),
      methodsSection(texts, view),
      view.factors === null ? null : html`<section>${button(view.factors, factors.title)}</section>`,
      devicesSection(texts, view),
      deleteSection(texts, view),
      logout === null
        ? null
        : html`<section>${action(logout, left, common.signOut)}${
          action(logout, { ...left, everywhere: 'on' }, account.signOutEverywhere, { isDanger: true })}</section>`
    ]
  }
}

function nameSection ({ common, account }: Texts, { user, saved, paths: { rename } }: AccountView): Html | null {
  if (rename === null) return null
  const fields = [nameField(common.name, user.name)]
  return section(common.name, form({ action: rename, hidden: saved, fields, submit: account.nameSubmit }))
}

function emailSection ({ common, account }: Texts, { user, hasPassword, sent, paths }: AccountView): Html | null {
  const { email, isVerified } = user
  if (email === null) return null
  const state = isVerified ? account.confirmed : account.unconfirmed
  return section(common.email, html`<p>${email} <small>${state}</small></p>
${paths.verifyEmail === null || isVerified
  ? null
  : action(paths.verifyEmail, sent, account.sendAgain)}
${paths.changeEmail === null
  ? null
  : form({
    action: paths.changeEmail,
    hidden: sent,
    fields: [
      field({ name: 'email', label: account.newEmail, type: 'email', autocomplete: 'email' }),
      hasPassword ? currentPassword(common.currentPassword) : null
    ],
    submit: account.emailSubmit
  })}`)
}

function passwordSection (
  { common, account }: Texts,
  { user, hasPassword, minLength, saved, paths: { changePassword, setPassword } }: AccountView
): Html | null {
  const path = hasPassword ? changePassword : user.isVerified ? setPassword : null
  if (path === null) return null
  return section(common.password, form({
    action: path,
    hidden: saved,
    fields: [
      username(common.email, user.email),
      hasPassword ? currentPassword(common.currentPassword) : null,
      newPassword(common, common.newPassword, minLength)
    ],
    submit: hasPassword ? account.passwordSubmit : account.setPassword
  }))
}

function methodsSection (
  { common, account }: Texts,
  { methods, others, saved, paths: { removeMethod } }: AccountView
): Html {
  return section(account.methodsTitle, html`<ul>
${methods.map(({ provider, label, email }) => {
  const shown = label ?? common.password
  return html`<li><span>${shown} <small>${email}</small></span>${methods.length < 2 || removeMethod === null
    ? html`<small>${account.onlyMethod}</small>`
    : action(removeMethod, { ...saved, provider }, account.remove, {
      label: filled(account.removeMethod, { provider: shown })
    })}</li>`
})}
</ul>
${others.map(({ label, href }) => button(href, filled(account.add, { provider: label })))}`)
}

function devicesSection (
  { language, common, account }: Texts,
  { sessions, saved, paths: { endSession } }: AccountView
): Html | null {
  if (sessions === null) return null
  return section(account.devicesTitle, html`<ul>
${sessions.map(({ id, current, lastSeenAt, userAgent }) => {
  const device = deviceOf(userAgent) ?? account.unknownDevice
  const used = current ? account.thisDevice : filled(account.lastUsed, { date: dateIn(language, lastSeenAt) })
  return html`<li><span>${device} <small>${used}</small></span>${current || endSession === null
    ? null
    : action(endSession, { ...saved, id }, common.signOut, { label: filled(account.endSession, { device }) })}</li>`
})}
</ul>`)
}

function deleteSection ({ common, account }: Texts, view: AccountView): Html | null {
  const { hasPassword, left, paths: { deleteAccount } } = view
  if (deleteAccount === null) return null
  return section(account.deleteSubmit, html`<p>${account.deleteText}</p>${form({
    action: deleteAccount,
    hidden: left,
    fields: hasPassword ? [currentPassword(common.currentPassword)] : [],
    submit: account.deleteSubmit,
    isDanger: true
  })}`)
}

/** Makes a part of a page, below a heading. */
export function section (title: string, content: Html): Html {
  return html`<section><h2>${title}</h2>${content}</section>`
}
