import { currentUser } from '../../current-user/current.js'
import { methodsIn } from '../../current-user/methods.js'
import { action, codeField, form, passwordField, usernameField, ways } from '../../pages/form.js'
import { type Content, type Html, html } from '../../pages/html.js'
import { passkeyForm } from '../../pages/passkey-form.js'
import { sentence } from '../../pages/texts.js'
import { pathOf } from '../../web/act.js'
import { page, redirected, targetsOf } from '../../web/page.js'
import { hasIcons, nameOf, providerButtons, signInPath } from './parts.js'
import { leaveForm } from './totp.js'

export const confirm = page({ path: '/pages/confirm' }, async (auth, view) => {
  const { request, reply, texts, next, needsFactor } = view
  const { common, confirm, factors } = texts
  const present = await currentUser(auth, request)
  const signIn = signInPath(auth, request, next)
  if (present === null) return redirected(reply, signIn)
  const { user: { email }, record: { principal } } = present
  const methods = methodsIn(auth, present)
  const path = pathOf(auth, 'local/reauthenticate')
  const hidden = targetsOf(auth, 'pages/confirm', { next, second_factor: needsFactor ? 'true' : null })
  const ask = (...fields: Content[]): Html => form({ action: path, hidden, fields, submit: confirm.submit })
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
            action(pathOf(auth, 'local/mail-login'), { ...hidden, email }, texts.mail.ask),
          passkey && passkeyForm(texts, { ceremony: 'factor', options: passkey.options, action: path, hidden }),
          providerButtons(auth, texts.signIn.withProvider, providers, { ...hidden, reauthenticate: 'true' })
        ]
      ),
      leaveForm(auth, texts, signIn)
    ]
  }
})
