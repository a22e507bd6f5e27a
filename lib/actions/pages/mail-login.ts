import { type AuthContext, hasMailSignIn } from '../../context.js'
import { currentPrincipal } from '../../current-user/current.js'
import { ANY_ORIGIN, withError, withParameter } from '../../http/redirects.js'
import { duration } from '../../pages/failure.js'
import { action, button, codeField, form, links } from '../../pages/form.js'
import { type Content, html } from '../../pages/html.js'
import { filled, sentence } from '../../pages/texts.js'
import { findEntry, keyOf } from '../../session/pending-steps.js'
import { useOwner } from '../../session/several-cookies.js'
import { MAIL_SIGN_IN } from '../../store/one-time-entries.js'
import { pathOf } from '../../web/act.js'
import { type View, page, redirected, targetsOf, waysOn } from '../../web/page.js'
import { unprovenIn } from '../first-proof.js'
import { type PendingMailSignIn, isUsedLink, ownerOfMailbox, signInOfLink } from '../mail-sign-in.js'
import { existingParts, nameOf } from './parts.js'

/**
 * The page of a sign-in by mail. With the token of the link it has a button where the link signs
 * in, else it says where; without a token it asks for the code. Opening it uses nothing.
 */
export const mailLogin = page({ path: '/local/mail-login', when: hasMailSignIn }, async (auth, view) => {
  const { request, reply, next, failure, texts } = view
  const { titles, mail, factors, confirm } = texts
  const { pages } = auth
  const query = new URL(request.url, ANY_ORIGIN).searchParams
  const token = failure === null ? query.get('token') : null
  const customPage = auth.mailPages?.mailLogin ?? null
  if (customPage !== null) {
    return redirected(reply, token === null ? customPage : withParameter(customPage, 'token', token))
  }
  await useOwner(request, id => keyOf(id, MAIL_SIGN_IN))
  const existingIn = async (pending: PendingMailSignIn | null) =>
    existingParts(auth, texts, pending && await unprovenIn(auth, request, await ownerOfMailbox(auth, pending)))
  const title = titles['sign-in']
  const path = pathOf(auth, 'local/mail-login/confirm')
  if (token !== null) {
    const found = await signInOfLink(auth, request, token)
    if (found === null) return { title, content: await ofUnusableLink(auth, view, token) }
    const { pending, pending: { email, next } } = found
    const { list, choice } = await existingIn('code' in pending ? pending : null)
    const hidden = { ...targetsOf(auth, 'local/mail-login', { next }), token }
    return {
      title,
      content: [
        html`<p>${sentence(mail.linkText, { email })}</p>`,
        form({ action: path, hidden, fields: list, submit: mail.submit, choice })
      ]
    }
  }

  const pending = await findEntry<PendingMailSignIn>(request, MAIL_SIGN_IN)
  const wait = Math.ceil(Number(query.get('retry_at')) - Date.now() / 1000)
  const held = wait > 0 && wait <= 3600 && html`<p>${filled(mail.wait, { time: duration(texts.language, wait) })}</p>`
  if (pending === null) {
    if (held) return { title, content: [held, waysOn(auth, request, texts)] }
    // The sign-in has expired, or another tab has finished it.
    const login = pages.loginWith(request, next)
    return redirected(reply, login === null ? pages.afterSuccess(request, next) : withError(login, 'invalid_state'))
  }
  const { email, remember } = pending
  const { list, choice } = await existingIn(pending)
  const hidden = targetsOf(auth, 'local/mail-login', { next: next ?? pending.next })
  const again = { ...hidden, email, remember: remember ? 'true' : null }
  return {
    title,
    content: [
      held,
      html`<p>${sentence(mail.codeText, { email })}</p>`,
      form({
        action: path,
        hidden,
        fields: [codeField('code', factors.mailCode, 'numeric'), list],
        submit: confirm.submit,
        choice
      }),
      action(pathOf(auth, 'local/mail-login'), again, mail.again),
      links([pages.loginWith(request, hidden.next), mail.otherAddress])
    ]
  }
})

/** Says why a link signs in nobody here, and what to do. */
async function ofUnusableLink (auth: AuthContext, { request, next, texts }: View, token: string): Promise<Content> {
  const { mail, signIn, common } = texts
  const principal = await currentPrincipal(auth, request)
  if (principal !== null) {
    const user = nameOf(principal)
    const here = auth.pages.afterSuccess(request, next)
    return [html`<p>${sentence(signIn.signedInAs, { user })}</p>`, button(here, common.continue, 'primary')]
  }
  const codePage = pathOf(auth, 'local/mail-login')
  const isReplaced = await findEntry(request, MAIL_SIGN_IN) !== null
  if (isReplaced) return [html`<p>${mail.newer}</p>`, waysOn(auth, request, texts, [codePage, texts.factors.mailCode])]
  if (!await isUsedLink(auth, token)) return [html`<p>${mail.elsewhere}</p>`, waysOn(auth, request, texts)]
  const again = auth.pages.loginWith(request, next)
  return [html`<p>${mail.used}</p>`, waysOn(auth, request, texts, [again, mail.again])]
}
