/**
 * Leads browsers to another origin after a form. It is loaded when a form does, because it is made
 * of pages.
 */
import type { FastifyReply } from 'fastify'
import type { AuthContext } from '../context.js'
import { type Content, type Texts, button, filled, html } from './elements.js'
import { PageLayout } from './layout.js'

type Look = Pick<AuthContext, 'layout' | 'site' | 'prefix'>

/** Returns how pages look: plain without an option that needs them at the start. */
export function layoutOf ({ layout, site, prefix }: Look): PageLayout {
  return layout ?? new PageLayout().of(site, prefix)
}

/**
 * Answers a form with a page that opens a URL, with and without scripts. Not with a redirect:
 * Chromium and WebKit apply the `form-action` of the page with the form to each redirect that
 * follows, and @fastify/helmet sets it to 'self'. Not with a header: proxies refuse one of this
 * length.
 */
export function leadTo (
  auth: Look, reply: FastifyReply, url: string, wordsIn: (texts: Texts) => { title: string, text?: Content }
): FastifyReply {
  const layout = layoutOf(auth)
  const texts = layout.textsFor(reply.request)
  const { title, text } = wordsIn(texts)
  const content = [text !== undefined && html`<p>${text}</p>`, button(url, texts.common.continue, 'primary')]
  return layout.send(reply, { title, refresh: url, content })
}

export function leadToProvider (
  auth: Look & Labels, reply: FastifyReply, provider: string, url: string
): FastifyReply {
  return leadTo(auth, reply, url, ({ signIn }) => ({
    title: filled(signIn.withProvider, { provider: providerLabel(auth, provider) })
  }))
}

/** Names that the first letter in upper case does not make. */
const LABELS: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'], ['gitlab', 'GitLab'], ['linkedin', 'LinkedIn']
])

type Labels = Pick<AuthContext, 'providers' | 'providerLabels'>

/** Returns how users call a provider, which this process need not have. */
export function providerLabel ({ providers, providerLabels }: Labels, name: string): string {
  // Without the id of one that was added while the application runs.
  const words = name.replace(/:.*/, '').split('-').map(word => word.charAt(0).toUpperCase() + word.slice(1))
  const label = providers.find(provider => provider.name === name)?.label ?? providerLabels.get(name)
  return label ?? LABELS.get(name) ?? words.join(' ')
}
