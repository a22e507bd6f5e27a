import {
  action, button, checkbox, codeField, emailField, form, nameField, newPassword, password, username
} from './form.js'
import { type Content, type Html, html } from './html.js'
import type { Page } from './page-layout.js'
import { type PasskeyPaths, passkeyForm, passkeySignal } from './passkey-form.js'
import { type Texts, filled } from './texts.js'

/** What each form of these pages sends besides its fields. */
export interface Targets {
  /** The page after a success; null for the root of the application. */
  readonly next: string | null
  /** The page of the form, which shows its errors. */
  readonly error_next: string
  readonly [field: string]: string | null
}

/** A provider that a page offers: how the user calls it, and where the sign-in starts. */
export interface OfferedProvider {
  readonly label: string
  readonly href: string
}

/** What the page `sign-in` offers. */
export interface SignInView {
  readonly targets: Targets
  readonly providers: readonly OfferedProvider[]
  /** Where the form for e-mail and password is sent; null without passwords. */
  readonly login: string | null
  /** What the user typed before. */
  readonly email: string | null
  readonly asksToRemember: boolean
  /** Other pages; null for those that are not mounted. */
  readonly forgotPassword: string | null
  readonly register: string | null
  /** Null without passkeys. */
  readonly passkey: PasskeySignInView | null
}

/** How the page `sign-in` offers passkeys. */
export interface PasskeySignInView extends PasskeyPaths {
  /** Where the response is sent. */
  readonly action: string
  /** The passkey that was refused because no user has it; null for none. */
  readonly unknown: { readonly rpId: string, readonly credentialId: string } | null
}

/** The page on which users sign in. */
export function signInPage (texts: Texts, view: SignInView): Page {
  const { common, signIn } = texts
  const { targets: hidden, providers, login, email, asksToRemember, forgotPassword, register, passkey } = view
  const remember = asksToRemember && checkbox('remember', common.remember)
  const withPasskey = (ceremony: 'login' | 'autofill', fields?: Content): Content => passkey && passkeyForm(texts, {
    ceremony, options: passkey.options, action: passkey.action, hidden, fields
  })
  return {
    title: signIn.title,
    script: passkey && passkey.script,
    content: [
      providerLinks(texts, providers),
      login !== null && providers.length > 0 && html`<p class="or">${signIn.or}</p>`,
      login !== null && form({
        action: login,
        hidden,
        fields: [
          emailField(common.email, email, passkey === null ? 'username' : 'username webauthn'),
          password(common.password),
          remember
        ],
        submit: signIn.title
      }),
      login !== null && withPasskey('autofill'),
      withPasskey('login', login === null && remember),
      passkey?.unknown && passkeySignal('unknown-credential', { ...passkey.unknown }),
      links([[forgotPassword, signIn.forgot], [register, signIn.register]])
    ]
  }
}

/** The page `sign-in` for a user who is signed in. */
export function signedInPage (
  { common, signIn }: Texts,
  { user, next, logout, after }: { user: string, next: string, logout: string, after: string }
): Page {
  return {
    title: signIn.title,
    content: [
      html`<p>${filled(signIn.signedInAs, { user })}</p>`,
      button(next, common.continue),
      action(logout, { next: after }, common.signOut)
    ]
  }
}

/** What the page `register` offers. */
export interface RegisterView extends Pick<SignInView, 'targets' | 'email' | 'asksToRemember'> {
  readonly action: string
  readonly name: string | null
  readonly minLength: number
  /** Whether the form asks for the address alone, because a mail with a link follows. */
  readonly isFirst: boolean
  readonly signIn: string
}

/** The page on which users register. */
export function registerPage ({ common, titles, register, forgotPassword }: Texts, view: RegisterView): Page {
  const { action, targets: hidden, email, name, minLength, isFirst, asksToRemember, signIn } = view
  return {
    title: titles.register,
    content: [
      isFirst && html`<p>${register.firstText}</p>`,
      form({
        action,
        hidden,
        fields: [
          !isFirst && nameField(common.optionalName, name),
          emailField(common.email, email),
          !isFirst && newPassword(common, common.password, minLength),
          !isFirst && asksToRemember && checkbox('remember', common.remember)
        ],
        submit: isFirst ? forgotPassword.submit : titles.register
      }),
      links([[signIn, register.signIn]])
    ]
  }
}

/** The page on which users ask for a link to a new password. */
export function forgotPasswordPage (
  { common, forgotPassword }: Texts,
  { action, targets: hidden, email, signIn }: Pick<RegisterView, 'targets' | 'action' | 'email' | 'signIn'>
): Page {
  return {
    title: forgotPassword.title,
    content: [
      html`<p>${forgotPassword.text}</p>`,
      form({ action, hidden, fields: emailField(common.email, email), submit: forgotPassword.submit }),
      links([[signIn, common.back]])
    ]
  }
}

/** The page after a form that may send a mail: the same for each address. */
export function linkSentPage ({ common, forgotPassword }: Texts, { signIn }: { signIn: string }): Page {
  return {
    title: forgotPassword.sentTitle,
    content: [html`<p>${forgotPassword.sentText}</p>`, links([[signIn, common.back]])]
  }
}

/** What the page `confirm` offers. */
export interface ConfirmView {
  readonly targets: Targets
  /** How the user is called. */
  readonly user: string
  /** The e-mail of the user's password. */
  readonly email: string | null
  /** Where the forms are sent. */
  readonly action: string
  /** Whether a code is asked for: of an authenticator app, or a recovery code. */
  readonly asksCode: boolean
  readonly asksPassword: boolean
  /** Null for a user without passkeys. */
  readonly passkey: PasskeyPaths | null
  readonly providers: readonly OfferedProvider[]
  readonly logout: string
  /** The page after a sign-out. */
  readonly signIn: string
}

/** The page on which a signed-in user authenticates again. */
export function confirmPage (texts: Texts, view: ConfirmView): Page {
  const { common, confirm, factors } = texts
  const { targets: hidden, user, email, action: path, asksCode, asksPassword, passkey, providers, logout } = view
  const ask = (...fields: Content[]): Html => form({ action: path, hidden, fields, submit: confirm.submit })
  return {
    title: confirm.title,
    script: passkey && passkey.script,
    content: [
      html`<p>${filled(confirm.text, { user })}</p>`,
      asksCode && [html`<p>${factors.codeText}</p>`, ask(codeField('code', factors.code, 'text'))],
      asksPassword && ask(username(common.email, email), password(common.password)),
      passkey && passkeyForm(texts, { ceremony: 'factor', options: passkey.options, action: path, hidden }),
      providerLinks(texts, providers),
      action(logout, { next: view.signIn }, confirm.signOut, { isDanger: true })
    ]
  }
}

function providerLinks ({ signIn }: Texts, providers: readonly OfferedProvider[]): Html[] {
  return providers.map(({ label, href }) => button(href, filled(signIn.withProvider, { provider: label })))
}

function links (others: ReadonlyArray<readonly [href: string | null, label: string]>): Html {
  const items = others.map(([href, label]) => href !== null && html`<li><a href="${href}">${label}</a></li>`)
  return html`<ul>${items}</ul>`
}
