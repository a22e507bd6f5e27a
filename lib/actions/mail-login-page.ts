import { hasMailSignIn } from '../context.js'
import { ANY_ORIGIN, withError, withParameter } from '../http/redirects.js'
import { action, codeField, form } from '../pages/form.js'
import { html } from '../pages/html.js'
import type { Page } from '../pages/page-layout.js'
import { type Texts, filled } from '../pages/texts.js'
import { findEntry, keyOf } from '../session/pending-steps.js'
import { useOwner } from '../session/several-cookies.js'
import { MAIL_SIGN_IN } from '../store/one-time-entries.js'
import { pathOf } from '../web/act.js'
import { page, redirected, targetsOf } from '../web/page.js'
import { type PendingMailSignIn, signInOfLink } from './mail-sign-in.js'

/**
 * The page of a sign-in by mail. With the token of the link it has a button where the link signs
 * in, else it says where; without a token it asks for the code. Opening it uses nothing.
 */
export const mailLogin = page({ path: '/local/mail-login', when: hasMailSignIn }, async (auth, view) => {
  const { request, reply, texts, next, typed, failure } = view
  const token = failure === null ? new URL(request.url, ANY_ORIGIN).searchParams.get('token') : typed.token
  const customPage = auth.mailPages?.mailLogin ?? null
  if (customPage !== null) {
    return redirected(reply, typeof token === 'string' ? withParameter(customPage, 'token', token) : customPage)
  }
  await useOwner(request, owner => keyOf(owner, MAIL_SIGN_IN))
  const confirm = pathOf(auth, 'local/mail-login/confirm')
  const targets = (next: string | null) => targetsOf(auth, 'local/mail-login', { next })
  if (typeof token === 'string') {
    const found = await signInOfLink(auth, request, token)
    if (found === null) return elsewherePage(texts)
    const { email, next } = found.pending
    return linkPage(texts, { action: confirm, hidden: { ...targets(next), token }, email })
  }

  const pending = await findEntry<PendingMailSignIn>(request, MAIL_SIGN_IN)
  if (pending === null && failure === null) {
    const { pages } = auth
    const login = pages.loginWith(request, next)
    return redirected(reply, login === null ? pages.afterSuccess(request, next) : withError(login, 'invalid_state'))
  }
  if (pending === null) return { title: texts.titles['sign-in'], content: [] }
  const { email, remember } = pending
  return codePage(texts, {
    action: confirm,
    hidden: targets(next ?? pending.next),
    email,
    again: { action: pathOf(auth, 'local/mail-login'), remember: remember ? 'true' : null }
  })
})

/** What the page shows. */
interface MailLoginView {
  readonly action: string
  readonly hidden: Readonly<Record<string, string | null>>
  readonly email: string
}

function linkPage ({ titles, mail }: Texts, { action, hidden, email }: MailLoginView): Page {
  return {
    title: titles['sign-in'],
    content: [
      html`<p>${filled(mail.linkText, { email })}</p>`,
      form({ action, hidden, fields: [], submit: mail.submit })
    ]
  }
}

function codePage (
  { titles, mail, factors, confirm }: Texts,
  { action: path, hidden, email, again }: MailLoginView & { again: { action: string, remember: string | null } }
): Page {
  const fields = codeField('code', factors.mailCode, 'numeric')
  return {
    title: titles['sign-in'],
    content: [
      html`<p>${filled(mail.codeText, { email })}</p>`,
      form({ action: path, hidden, fields, submit: confirm.submit }),
      action(again.action, { ...hidden, email, remember: again.remember }, mail.again)
    ]
  }
}

function elsewherePage ({ titles, mail }: Texts): Page {
  return { title: titles['sign-in'], content: html`<p>${mail.elsewhere}</p>` }
}
