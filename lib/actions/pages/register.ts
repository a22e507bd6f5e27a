import { canRegister, needed } from '../../context.js'
import { checkbox, emailField, form, links, nameField, newPasswordField } from '../../pages/form.js'
import { html } from '../../pages/html.js'
import { pathOf } from '../../web/act.js'
import { page, targetsOf } from '../../web/page.js'
import { isChecked } from '../../web/schema-parts.js'
import { pathOfPage, signInPath, textIn } from './parts.js'

export const register = page({ path: '/pages/register', when: canRegister }, async (auth, view) => {
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
      form({
        action: pathOf(auth, 'local/register'),
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
            checkbox('remember', common.remember, isChecked(typed.remember))
        ],
        submit: isFirst ? forgotPassword.submit : titles.register
      }),
      links([signInPath(auth, request, next), register.signIn])
    ]
  }
})
