import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthContext } from '../../context.js'
import type { CurrentUser } from '../../current-user/current.js'
import { sentenceOf } from '../../pages/failure.js'
import { action, links } from '../../pages/form.js'
import { html } from '../../pages/html.js'
import { filled, sentence } from '../../pages/texts.js'
import { pathOf } from '../../web/act.js'
import { layoutOf } from '../../web/lead-to.js'
import { providerLabel } from '../../web/provider-labels.js'
import { nameOf } from './parts.js'

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
  const startedOn = auth.pages.ofStart(request, query.error_next)
  const sent = ['next', 'link', 'reauthenticate', 'remember', 'signed'].map(field =>
    [field, typeof query[field] === 'string' ? query[field] : null] as const)
  const hidden = { ...Object.fromEntries(sent), error_next: startedOn ?? auth.site.pathOf(request) }
  const failure = typeof query.error === 'string' ? sentenceOf(texts, query.error) : null
  return layout.send(reply, {
    title,
    content: [
      html`<p>${sentence(text, values)}</p>`,
      action(pathOf(auth, `${name}/login`), hidden, title),
      links([startedOn ?? auth.site.publicPath('/'), common.back])
    ]
  }, { failure })
}
