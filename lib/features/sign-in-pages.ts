import { type AuthContext, createsPasskeys, hasMails, needed } from '../core/context.js'
import { currentPrincipal, currentUser, methodsIn } from '../core/current-user.js'
import {
  type Content, type Html, action, button, checkboxField, codeField, emailField, htmlForm, html, links, nameField,
  newPasswordField, passwordField, sentence, usernameField, ways
} from '../core/pages/elements.js'
import type { Page } from '../core/pages/layout.js'
import { type View, page, redirected, targetsOf } from '../core/pages/page.js'
import {
  hasIcons, nameOf, pathOfPage, providerButtons, signInLinks, signInPath, textIn
} from '../core/pages/parts.js'
import { isChecked } from '../core/schema.js'
import { UnknownPasskey } from './passkeys/ceremonies.js'
import { createPasskeyField, passkeyForm, passkeySignal } from './passkeys/form.js'
import { leaveForm } from './second-factor/authenticator.js'

/** The page on which users sign in; a signed-in user sees who they are. */
export const signInPage = page({ path: '/pages/sign-in' }, async (auth, view) => {
  const { request, next, texts: { common, signIn } } = view
  const principal = await currentPrincipal(auth, request)
  if (principal === null) return visitorPage(auth, view)
  return {
    title: signIn.title,
    content: [
      html`<p>${sentence(signIn.signedInAs, { user: nameOf(principal) })}</p>`,
      button(auth.redirects.afterSuccess(request, next), common.continue, 'primary'),
      action(
        auth.formPaths.get('logout'), { next: pathOfPage(auth, 'sign-in', next), done: 'signed_out' }, common.signOut,
        { look: 'quiet' })
    ]
  }
})

function visitorPage (auth: AuthContext, { request, texts, next, typed, failure }: View): Page {
  const { common, signIn, mail } = texts
  const { formPaths, factors: { passkeys }, passkeyPaths } = auth
  const [byPassword, byMail] = [formPaths.get('local/login'), formPaths.get('local/mail-login')]
  const hidden = targetsOf(auth, 'pages/sign-in', { next })
  const providers = auth.providers.map(({ name }) => name)
  const remember = auth.remember !== null && checkboxField('remember', common.remember, isChecked(typed.remember))
  // The button for a mail is behind an "or".
  const isBelowMail = byPassword && byMail
  const toMail = { action: byMail, submit: mail.ask, or: signIn.or }
  const emailTyped = emailField(
    common.email, textIn(typed.email), passkeyPaths === null ? 'username' : 'username webauthn')
  const passkey = (ceremony: 'login' | 'autofill'): Content => passkeyPaths && passkeyForm(texts, {
    ceremony, options: passkeyPaths.options, action: formPaths.get('local/passkeys/login'), hidden
  })
  const linksWith = (query: { remember?: string }): Html[] =>
    signInLinks(auth, signIn.withProvider, providers, { ...hidden, ...query })
  const unknown = failure instanceof UnknownPasskey ? failure : null
  return {
    title: signIn.title,
    script: passkeyPaths && passkeyPaths.script,
    hasIcons: hasIcons(auth),
    content: [
      ways(
        signIn.or,
        // A link cannot send the checkbox: of two for each provider, the style shows one.
        providers.length > 0 && remember
          ? html`<div class="once">${linksWith({})}</div><div class="remembered">${linksWith({ remember: 'on' })}</div>`
          : linksWith({}),
        [
          htmlForm({
            action: byPassword,
            hidden,
            fields: [emailTyped, passwordField(common.password), remember, createsPasskeys(auth) && createPasskeyField],
            submit: signIn.title,
            other: toMail
          }),
          !byPassword && htmlForm({ ...toMail, hidden, fields: [emailTyped, remember] }),
          (byPassword || byMail) && passkey('autofill'),
          isBelowMail && passkey('login')
        ],
        !isBelowMail && passkey('login')
      ),
      !byPassword && !byMail && remember,
      unknown && passkeys && passkeySignal('unknown-credential', {
        rpId: passkeys.relyingParty.rpId, credentialId: unknown.id
      }),
      links(
        [auth.redirects.linkTo(request, 'forgotPassword', next), signIn.forgot],
        [auth.redirects.linkTo(request, 'register', next), signIn.register]
      )
    ]
  }
}

export const registerPage = page({
  path: '/pages/register', when: ({ formPaths }) => formPaths.has('local/register')
}, async (auth, view) => {
  const { request, texts, next, typed } = view
  const { common, titles, register, forgotPassword } = texts
  const { minPasswordLength, registration } = needed(auth.local, 'local')
  const verify = registration?.verify
  // The form asks for the address alone, and a mail with a link follows.
  const isFirst = verify === 'first'
  return {
    title: titles.register,
    content: [
      isFirst && html`<p>${register.firstText}</p>`,
      htmlForm({
        action: auth.formPaths.get('local/register'),
        hidden: {
          ...targetsOf(auth, 'pages/register', { next }),
          // A page after the registration that says the same for each address.
          next: verify === 'later' ? next : pathOfPage(auth, 'link-sent', next)
        },
        fields: [
          !isFirst && nameField(common.optionalName, textIn(typed.name)),
          emailField(common.email, textIn(typed.email)),
          !isFirst && newPasswordField(common, common.password, minPasswordLength),
          auth.remember !== null && verify === 'later' &&
            checkboxField('remember', common.remember, isChecked(typed.remember))
        ],
        submit: isFirst ? forgotPassword.submit : titles.register
      }),
      links([signInPath(auth, request, next), register.signIn])
    ]
  }
})

export const forgotPasswordPage = page({
  path: '/pages/forgot-password', when: ({ formPaths }) => formPaths.has('local/forgot-password')
}, async (auth, { request, texts: { common, forgotPassword }, next, typed }) => ({
  title: forgotPassword.title,
  content: [
    html`<p>${forgotPassword.text}</p>`,
    htmlForm({
      action: auth.formPaths.get('local/forgot-password'),
      hidden: { ...targetsOf(auth, 'pages/forgot-password', { next }), next: pathOfPage(auth, 'link-sent', next) },
      fields: emailField(common.email, textIn(typed.email)),
      submit: forgotPassword.submit
    }),
    links([signInPath(auth, request, next), common.back])
  ]
}))

/** The page after a form that may send a mail: the same for each address. */
export const linkSentPage = page({
  path: '/pages/link-sent', when: hasMails
}, async (auth, { request, texts: { common, forgotPassword }, next }) => ({
  title: forgotPassword.sentTitle,
  content: [html`<p>${forgotPassword.sentText}</p>`, links([signInPath(auth, request, next), common.back])]
}))

export const confirmPage = page({ path: '/pages/confirm' }, async (auth, view) => {
  const { request, reply, texts, next, needsFactor } = view
  const { common, confirm, factors } = texts
  const present = await currentUser(auth, request)
  const signIn = signInPath(auth, request, next)
  if (present === null) return redirected(reply, signIn)
  const { user: { email }, record: { principal } } = present
  const methods = methodsIn(auth, present)
  const path = auth.formPaths.get('local/reauthenticate')
  const hidden = targetsOf(auth, 'pages/confirm', { next, second_factor: needsFactor ? 'true' : null })
  const ask = (...fields: Content[]): Content => htmlForm({ action: path, hidden, fields, submit: confirm.submit })
  const providers = auth.providers.map(({ name }) => name).filter(name => !needsFactor && methods.includes(name))
  const passkey = methods.includes('passkey') ? auth.passkeyPaths : null
  return {
    title: confirm.title,
    script: passkey && passkey.script,
    hasIcons: hasIcons(auth),
    content: [
      html`<p>${sentence(confirm.text, { user: nameOf(principal) })}</p>`,
      ways(
        texts.signIn.or,
        (methods.includes('totp') || methods.includes('recovery')) &&
          [html`<p>${factors.codeText}</p>`, ask(codeField('code', factors.code, 'text'))],
        !needsFactor && methods.includes('password') &&
          ask(usernameField(common.email, email), passwordField(common.password)),
        [
          !needsFactor && methods.includes('mail') &&
            action(auth.formPaths.get('local/mail-login'), { ...hidden, email }, texts.mail.ask),
          passkey && passkeyForm(texts, { ceremony: 'factor', options: passkey.options, action: path, hidden }),
          providerButtons(auth, texts.signIn.withProvider, providers, { ...hidden, reauthenticate: 'true' })
        ]
      ),
      leaveForm(auth, texts, signIn)
    ]
  }
})
