import { askedMail } from '../../core/act.js'
import { type AuthContext, needed } from '../../core/context.js'
import { currentPrincipal, currentUser } from '../../core/current-user.js'
import { askBy, methodsOf, namesOfMethods } from '../../core/methods.js'
import {
  type Html, action, button, checkboxField, emailField, filled, html, htmlForm, link, links, nameField,
  newPasswordField, passwordField, sentence, ways
} from '../../core/pages/elements.js'
import { duration } from '../../core/pages/failure.js'
import type { Page, View } from '../../core/pages/layout.js'
import { page, redirected, targetsOf } from '../../core/pages/page.js'
import { hasIcons, nameOf, pathOfPage, signInLinks, signInPath, textIn } from './parts.js'
import { isChecked } from '../../core/schema.js'
import { leaveForm } from '../second-factor/authenticator.js'
import { hasMails } from '../local/offers.js'

/** The page on which users sign in; a signed-in user sees who they are. */
export const signInPage = page({ path: '/pages/sign-in', whileImpersonating: true }, async (auth, view) => {
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
        { look: 'plain' })
    ]
  }
})

async function visitorPage (auth: AuthContext, view: View): Promise<Page> {
  const { request, texts, next, typed, failure } = view
  const { common, signIn, mail } = texts
  const { formPaths } = auth
  const [byPassword, byMail] = [formPaths.get('local/login'), formPaths.get('local/mail-login')]
  const hidden = targetsOf(auth, 'pages/sign-in', { next })
  const providers = auth.providers.map(({ name }) => name)
  const remember = auth.remember !== null && checkboxField('remember', common.remember, isChecked(typed.remember))
  // The button for a mail is behind an "or".
  const isBelowMail = byPassword && byMail
  const toMail = { action: byMail, submit: mail.ask, or: signIn.or }
  const offers = await Promise.all(auth.offered.flatMap(({ offer }) => offer?.(auth, view, hidden) ?? []))
  const [autofill] = offers.map(({ autofill }) => `username ${autofill}` as const)
  const emailTyped = emailField(common.email, textIn(typed.email), autofill ?? 'username')
  const others = offers.map(({ way }) => way)
  const linksWith = (query: { remember?: string }): Html[] =>
    signInLinks(auth, signIn.withProvider, providers, { ...hidden, ...query })
  const forgot = auth.redirects.linkTo(request, 'forgotPassword', next)
  const beside = forgot && html`<span class="beside">${link(forgot, signIn.forgot)}</span>`
  const { name } = needed(auth.layout, 'pages')
  const title = { title: signIn.title, heading: name && filled(signIn.titleAt, { name }) }
  const password = passwordField(common.password, 'password', beside)
  const fields = [emailTyped, password, remember, offers.map(({ fields }) => fields)]
  // By the domain of an address the user may have to sign in elsewhere.
  const byAddress = formPaths.get('connections/start')
  const hasAddress = typed.email !== undefined && (failure?.code !== 'invalid_email' || typed.password !== undefined)
  if (byAddress !== undefined && !hasAddress && await auth.parts.connections?.rows.hasDomains()) {
    const asked = [emailTyped, remember, offers.map(({ fields }) => fields)]
    const ask = htmlForm({ action: byAddress, hidden, fields: asked, submit: common.continue })
    return {
      ...title,
      script: offers[0]?.script ?? null,
      hasIcons: hasIcons(auth),
      content: [
        ways(signIn.or, linksWith({}), [ask, offers.map(({ beside }) => beside), others]),
        offers.map(({ signals }) => signals),
        links([auth.redirects.linkTo(request, 'register', next), signIn.register])
      ]
    }
  }
  return {
    ...title,
    script: offers[0]?.script ?? null,
    hasIcons: hasIcons(auth),
    content: [
      ways(
        signIn.or,
        // A link cannot send the checkbox: of two for each provider, the style shows one.
        providers.length > 0 && remember
          ? html`<div class="once">${linksWith({})}</div><div class="remembered">${linksWith({ remember: 'on' })}</div>`
          : linksWith({}),
        [
          htmlForm({ action: byPassword, hidden, fields, submit: signIn.title, other: toMail }),
          !byPassword && htmlForm({ ...toMail, hidden, fields: [emailTyped, remember] }),
          (byPassword || byMail) && offers.map(({ beside }) => beside),
          isBelowMail && others
        ],
        !isBelowMail && others
      ),
      !byPassword && !byMail && remember,
      offers.map(({ signals }) => signals),
      links([auth.redirects.linkTo(request, 'register', next), signIn.register])
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
}, async (auth, { request, texts: { language, common, register, forgotPassword, mail }, next }) => {
  const title = forgotPassword.sentTitle
  const back = [signInPath(auth, request, next), common.back] as const
  const asked = askedMail(request)
  if (asked === null) return { title, content: [html`<p>${forgotPassword.sentText}</p>`, links(back)] }
  const { form, email } = asked
  const wait = needed(auth.mailer, 'sendMail').isLimited ? Math.ceil(asked.wait / 1000) : 0
  const isReset = form === 'forgot-password'
  // Another registration takes the password again.
  const isRepeatable = isReset || needed(auth.local, 'local').registration?.verify === 'first'
  const hidden = { ...targetsOf(auth, 'pages/link-sent', { next }), next: pathOfPage(auth, 'link-sent', next), email }
  return {
    title,
    content: [
      html`<p>${sentence((isReset ? forgotPassword : register).sentTo, { email })}</p>`,
      isRepeatable && wait > 0 && html`<p>${filled(mail.wait, { time: duration(language, wait) })}</p>`,
      isRepeatable && action(auth.formPaths.get(`local/${form}`), hidden, mail.again),
      links([auth.redirects.linkTo(request, isReset ? 'forgotPassword' : 'register', next), mail.otherAddress], back)
    ]
  }
})

export const confirmPage = page({ path: '/pages/confirm' }, async (auth, view) => {
  const { request, reply, texts, next, needsFactor } = view
  const { confirm } = texts
  const present = await currentUser(auth, request)
  const signIn = signInPath(auth, request, next)
  if (present === null) return redirected(reply, signIn)
  const { user: { email }, record: { principal } } = present
  const names = namesOfMethods(auth, present)
  const hidden = targetsOf(auth, 'pages/confirm', { next, second_factor: needsFactor ? 'true' : null })
  const methods = methodsOf(auth, present).filter(({ factor }) => factor !== undefined || !needsFactor)
  const action = auth.formPaths.get('local/reauthenticate')
  const asked = await askBy(auth, methods, view, { action, hidden, email, names })
  return {
    title: confirm.title,
    script: asked.script,
    hasIcons: hasIcons(auth),
    content: [
      html`<p>${sentence(confirm.text, { user: nameOf(principal) })}</p>`,
      ways(texts.signIn.or, ...asked.forms, asked.buttons),
      leaveForm(auth, texts, signIn)
    ]
  }
})
