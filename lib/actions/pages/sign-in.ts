import { type AuthContext, createsPasskeys, hasMailSignIn, hasPasswords } from '../../context.js'
import { currentPrincipal } from '../../current-user/current.js'
import { UnknownPasskey } from '../../factors/passkey-ceremonies.js'
import { action, button, checkbox, emailField, form, links, passwordField, ways } from '../../pages/form.js'
import { type Content, type Html, html } from '../../pages/html.js'
import type { Page } from '../../pages/page-layout.js'
import { createPasskeyField, passkeyForm, passkeySignal } from '../../pages/passkey-form.js'
import { sentence } from '../../pages/texts.js'
import { pathOf } from '../../web/act.js'
import { type View, page, targetsOf } from '../../web/page.js'
import { isChecked } from '../../web/schema-parts.js'
import { hasIcons, nameOf, pathOfPage, providerLinks, textIn } from './parts.js'

/** The page on which users sign in; a signed-in user sees who they are. */
export const signIn = page({ path: '/pages/sign-in' }, async (auth, view) => {
  const { request, next, texts: { common, signIn } } = view
  const principal = await currentPrincipal(auth, request)
  if (principal === null) return signInPage(auth, view)
  return {
    title: signIn.title,
    content: [
      html`<p>${sentence(signIn.signedInAs, { user: nameOf(principal) })}</p>`,
      button(auth.pages.afterSuccess(request, next), common.continue, 'primary'),
      action(
        pathOf(auth, 'logout'), { next: pathOfPage(auth, 'sign-in', next), done: 'signed_out' }, common.signOut,
        { look: 'quiet' })
    ]
  }
})

function signInPage (auth: AuthContext, { request, texts, next, typed, failure }: View): Page {
  const { common, signIn, mail } = texts
  const { factors: { passkeys }, passkeyPaths } = auth
  const hidden = targetsOf(auth, 'pages/sign-in', { next })
  const providers = auth.providers.map(({ name }) => name)
  const [byPassword, byMail] = [hasPasswords(auth), hasMailSignIn(auth)]
  const remember = auth.remember !== null && checkbox('remember', common.remember, isChecked(typed.remember))
  // The button for a mail is behind an "or".
  const isBelowMail = byPassword && byMail
  const byPasskey = pathOf(auth, 'local/passkeys/login')
  const toMail = { action: pathOf(auth, 'local/mail-login'), submit: mail.ask, or: signIn.or }
  const emailTyped = emailField(
    common.email, textIn(typed.email), passkeyPaths === null ? 'username' : 'username webauthn')
  const passkey = (ceremony: 'login' | 'autofill'): Content => passkeyPaths && passkeyForm(texts, {
    ceremony, options: passkeyPaths.options, action: byPasskey, hidden
  })
  const linksWith = (query: { remember?: string }): Html[] =>
    providerLinks(auth, signIn.withProvider, providers, { ...hidden, ...query })
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
          byPassword && form({
            action: pathOf(auth, 'local/login'),
            hidden,
            fields: [emailTyped, passwordField(common.password), remember, createsPasskeys(auth) && createPasskeyField],
            submit: signIn.title,
            other: byMail && toMail
          }),
          !byPassword && byMail && form({ ...toMail, hidden, fields: [emailTyped, remember] }),
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
        [auth.pages.linkTo(request, 'forgotPassword', next), signIn.forgot],
        [auth.pages.linkTo(request, 'register', next), signIn.register]
      )
    ]
  }
}
