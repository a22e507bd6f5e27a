import { hasMails } from '../../context.js'
import { emailField, form, links } from '../../pages/form.js'
import { html } from '../../pages/html.js'
import { pathOf } from '../../web/act.js'
import { page, targetsOf } from '../../web/page.js'
import { pathOfPage, signInPath, textIn } from './parts.js'

export const forgotPassword = page({
  path: '/pages/forgot-password', when: auth => hasMails(auth, 'forgotPassword')
}, async (auth, { request, texts: { common, forgotPassword }, next, typed }) => ({
  title: forgotPassword.title,
  content: [
    html`<p>${forgotPassword.text}</p>`,
    form({
      action: pathOf(auth, 'local/forgot-password'),
      hidden: { ...targetsOf(auth, 'pages/forgot-password', { next }), next: pathOfPage(auth, 'link-sent', next) },
      fields: emailField(common.email, textIn(typed.email)),
      submit: forgotPassword.submit
    }),
    links([signInPath(auth, request, next), common.back])
  ]
}))

/** The page after a form that may send a mail: the same for each address. */
export const linkSent = page({
  path: '/pages/link-sent', when: auth => hasMails(auth)
}, async (auth, { request, texts: { common, forgotPassword }, next }) => ({
  title: forgotPassword.sentTitle,
  content: [html`<p>${forgotPassword.sentText}</p>`, links([signInPath(auth, request, next), common.back])]
}))
