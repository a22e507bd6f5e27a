import { checkbox, choice, field, form, nameField, newPassword, password, username } from './form.js'
import { html } from './html.js'
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
export function registrationPage (
  { common, titles }: Texts,
  { action, token, email, minLength, roles, asksToRemember }: RegistrationView
): Page {
  return {
    title: titles.register,
    content: [form({
      action,
      hidden: { token },
      fields: [
        username(common.email, email),
        nameField(common.optionalName, null),
        newPassword(common, common.password, minLength),
        roles.length === 0 ? null : choice({ name: 'role', label: common.role, none: common.noRole, choices: roles }),
        asksToRemember ? checkbox('remember', common.remember) : null
      ],
      submit: titles.register
    })]
  }
}

/** The page on which a user chooses a new password. */
export function resetPage ({ common, titles, links }: Texts, { action, token, email, minLength }: LinkView): Page {
  return {
    title: titles['reset-password'],
    content: [
      html`<p>${links.resetText}</p>`,
      form({
        action,
        hidden: { token },
        fields: [
          username(common.email, email),
          newPassword(common, common.newPassword, minLength)
        ],
        submit: links.resetSubmit
      })
    ]
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
  const { action, token, email, createdAt, isSignedIn, isVerified } = view
  const confirm = form({
    action,
    hidden: { token },
    fields: [username(common.email, email), isSignedIn ? null : password(common.password)],
    submit: links.verifySubmit
  })
  const release = form({
    action,
    hidden: { token, not_me: 'true' },
    fields: [field({ name: 'email', label: links.releaseField, type: 'email', autocomplete: 'email' })],
    submit: links.releaseSubmit
  })
  return {
    title: titles['verify-email'],
    content: [
      html`<p>${filled(links.verifyText, { date: dateIn(language, createdAt) })}</p>`,
      html`<section><h2>${links.itWasYou}</h2>${confirm}</section>`,
      isVerified ? null : html`<section><h2>${links.itWasNotYou}</h2>${release}</section>`
    ]
  }
}

/** The page that confirms a new address. It asks for the password unless the user is signed in. */
export function changeEmailPage (
  { common, confirm, titles, links }: Texts,
  { action, token, email, to, isSignedIn }: Omit<LinkView, 'minLength'> & { to: string, isSignedIn: boolean }
): Page {
  return {
    title: titles['change-email'],
    content: [
      html`<p>${filled(links.changeText, { to, email })}</p>`,
      isSignedIn ? null : html`<p>${links.changePassword}</p>`,
      form({
        action,
        hidden: { token },
        fields: isSignedIn ? [] : [username(common.email, email), password(common.password)],
        submit: confirm.submit
      })
    ]
  }
}
