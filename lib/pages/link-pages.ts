import { checkbox, choice, field, form, nameField, newPassword, password, section, username } from './form.js'
import { type Content, type Html, html } from './html.js'
import type { Page } from './page-layout.js'
import { type Texts, dateIn, filled } from './texts.js'

/** What the pages behind the links of mails have in common. */
export interface LinkView {
  /** The path that the form is sent to. */
  readonly action: string
  readonly token: string
  /** The address that the link is about. */
  readonly email: string
  /** The least number of characters of a new password. */
  readonly minLength: number
}

/** What the page behind a link to register needs besides. */
interface RegistrationView extends LinkView {
  readonly roles: readonly string[]
  readonly asksToRemember: boolean
}

/** The page that registers a user whose address the link confirms. */
export function registrationPage ({ common, titles }: Texts, view: RegistrationView): Page {
  const { email, minLength, roles, asksToRemember } = view
  return {
    title: titles.register,
    content: linkForm(view, titles.register, [
      username(common.email, email),
      nameField(common.optionalName, null),
      newPassword(common, common.password, minLength),
      roles.length > 0 && choice('role', common.role, common.noRole, roles),
      asksToRemember && checkbox('remember', common.remember)
    ])
  }
}

/** The page on which a user chooses a new password. */
export function resetPage ({ common, titles, links }: Texts, view: LinkView): Page {
  const fields = [username(common.email, view.email), newPassword(common, common.newPassword, view.minLength)]
  return {
    title: titles['reset-password'],
    content: [html`<p>${links.resetText}</p>`, linkForm(view, links.resetSubmit, fields)]
  }
}

/**
 * The page that confirms the address of an account. It has no text that the person who registered
 * chose: they may be a stranger to the reader.
 */
export function verifyPage (
  { language, common, titles, links }: Texts,
  view: Omit<LinkView, 'minLength'> & { createdAt: Date, isSignedIn: boolean, isVerified: boolean }
): Page {
  const { email, createdAt, isSignedIn, isVerified } = view
  const confirm = linkForm(view, links.verifySubmit, [
    username(common.email, email), !isSignedIn && password(common.password)
  ])
  const release = linkForm(view, links.releaseSubmit, [
    field({ name: 'email', label: links.releaseField, type: 'email', autocomplete: 'email' })
  ], { not_me: 'true' })
  return {
    title: titles['verify-email'],
    content: [
      html`<p>${filled(links.verifyText, { date: dateIn(language, createdAt) })}</p>`,
      section(links.itWasYou, confirm),
      !isVerified && section(links.itWasNotYou, release)
    ]
  }
}

/** The page that confirms a new address. It asks for the password unless the user is signed in. */
export function changeEmailPage (
  { common, confirm, titles, links }: Texts,
  view: Omit<LinkView, 'minLength'> & { to: string, isSignedIn: boolean }
): Page {
  const { email, to, isSignedIn } = view
  return {
    title: titles['change-email'],
    content: [
      html`<p>${filled(links.changeText, { to, email })}</p>`,
      !isSignedIn && html`<p>${links.changePassword}</p>`,
      linkForm(view, confirm.submit, !isSignedIn && [username(common.email, email), password(common.password)])
    ]
  }
}

function linkForm (
  { action, token }: Pick<LinkView, 'action' | 'token'>, submit: string, fields: Content, more: { not_me?: string } = {}
): Html {
  return form({ action, hidden: { token, ...more }, fields, submit })
}
