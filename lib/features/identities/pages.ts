import type { FastifyReply, FastifyRequest } from 'fastify'
import { recordFailure, startPathOf } from '../../core/act.js'
import type { AuthContext } from '../../core/context.js'
import type { CurrentUser } from '../../core/current-user.js'
import { type Html, action, button, filled, html, item, links, sentence, verbatim } from '../../core/pages/elements.js'
import { failureOf, sentenceOf } from '../../core/pages/failure.js'
import { layoutOf, providerLabel } from '../../core/pages/lead-to.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { hasIcons, nameOf, providerButtons, signInLinks } from '../pages/parts.js'
import type { Principal } from '../../session/record.js'
import { canSignIn } from '../../core/methods.js'

/**
 * Shows what to do behind a callback that signs nobody in: a signed-in user sees who they are, and
 * a visitor starts again. It is there without the option `pages` too.
 */
export async function showSpent (
  auth: AuthContext,
  { error, request, reply }: { error: unknown, request: FastifyRequest, reply: FastifyReply },
  { provider, principal, next }: { provider: string, principal: Principal | null, next: string | null }
): Promise<FastifyReply> {
  const layout = layoutOf(auth)
  const texts = layout.textsFor(request)
  const { common, signIn, confirm } = texts
  const refusal = recordFailure(request, reply, error, provider)
  const home = auth.site.publicPath('/')
  const left = { next: auth.redirects.loginWith(request, next) }
  const content = principal === null
    ? [signInLinks(auth, signIn.withProvider, [provider], { next }), links([home, common.home])]
    : [
        html`<p>${sentence(signIn.signedInAs, { user: nameOf(principal) })}</p>`,
        button(next ?? home, common.continue, 'primary'),
        action(auth.formPaths.get('logout'), left, confirm.signOut, { look: 'plain' })
      ]
  const failure = principal === null ? failureOf(texts, refusal) : null
  const page = { title: signIn.title, hasIcons: hasIcons(auth), content }
  return layout.send(reply.code(refusal.statusCode), page, { failure })
}

/**
 * Shows the page whose button starts what a link asks for: it names the provider and the account.
 * It is there without the option `pages` too.
 */
export async function showStart (auth: AuthContext, { request, reply, query, name, present, what }: {
  request: FastifyRequest
  reply: FastifyReply
  /** The query of the link, which the button sends. */
  query: Readonly<Record<string, unknown>>
  /** The name of the provider. */
  name: string
  present: CurrentUser
  what: 'link' | 'consent' | 'reauthentication'
}): Promise<FastifyReply> {
  const layout = layoutOf(auth)
  const texts = layout.textsFor(request)
  const { common, signIn, account, confirm } = texts
  const values = { provider: providerLabel(auth, name), user: nameOf(present.record.principal) }
  const text = { link: account.addText, consent: account.consentText, reauthentication: confirm.text }[what]
  const title = filled(what === 'link' ? account.add : signIn.withProvider, values)
  const startedOn = auth.redirects.ofStart(request, query.error_next)
  const sent = ['next', 'link', 'reauthenticate', 'remember', 'signed'].map(field =>
    [field, typeof query[field] === 'string' ? query[field] : null] as const)
  const hidden = { ...Object.fromEntries(sent), error_next: startedOn ?? auth.site.pathOf(request) }
  const failure = typeof query.error === 'string' ? sentenceOf(texts, query.error) : null
  return layout.send(reply, {
    title,
    content: [
      html`<p>${sentence(text, values)}</p>`,
      action(startPathOf(auth, name), hidden, title),
      links([startedOn ?? auth.site.publicPath('/'), common.back])
    ]
  }, { failure })
}

export const methodsSection: Section = { name: 'methods', order: 60, show: methodsRow }

/** Lists how the user signs in, with what they can add and remove. */
async function methodsRow (view: AccountView): Promise<Html> {
  const { auth, texts: { common, account }, user, links, rowOf, targets } = view
  const names = links.map(({ provider }) => provider)
  // So that their labels are known.
  await Promise.all(names.map(async name => auth.parts.connections?.providers.find(name)))
  const others = auth.providers.map(({ name }) => name).filter(name => !names.includes(name))
  // Whom the application has created is known by an address.
  const own = new Map([['local', common.password], ['application', common.email]])
  const labelOf = (name: string): string => own.get(name) ?? providerLabel(auth, name)
  const [unlink, hidden] = [auth.formPaths.get('pages/unlink'), targets({ open: true })]
  const isNeeded = (name: string): boolean => links.length < 2 ||
    !canSignIn(auth, user, links.filter(({ provider }) => provider !== name))
  const isOnly = names.every(isNeeded)
  const items = links.map(({ provider, claims: { email } }) => {
    const more = { label: filled(account.removeMethod, { provider: labelOf(provider) }), look: 'small danger' } as const
    return item(
      html`${labelOf(provider)} <small>${verbatim(email ?? null)}</small>`,
      !isNeeded(provider) && action(unlink, { ...hidden, provider }, account.remove, more)
    )
  })
  return rowOf({
    title: account.methodsTitle,
    state: html`${names.map(labelOf).join(' · ')} ${isOnly && html`<small>${account.onlyMethod}</small>`}`,
    content: (!isOnly || others.length > 0) &&
      [html`<ul>${items}</ul>`, providerButtons(auth, account.add, others, { ...hidden, done: null, link: 'true' })]
  })
}
