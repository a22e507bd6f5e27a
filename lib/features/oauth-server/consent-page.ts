import { hash } from 'node:crypto'
import type { User } from '../../accounts/account.js'
import type { AuthContext } from '../../core/context.js'
import type { CurrentUser } from '../../core/current-user.js'
import {
  type Content, type Texts, action, alert, filled, html, htmlForm, section, sentence
} from '../../core/pages/elements.js'
import type { Page, View } from '../../core/pages/layout.js'
import { waysOn } from '../../core/pages/page.js'
import { wordsIn } from '../../core/scopes.js'
import { nameOf, signInPath } from '../pages/parts.js'
import { isDocumentUrl } from './client-documents.js'
import type { OAuthClient } from './client.js'
import type { Resource } from './oauth-server.js'
import { kindOf, shownTarget } from './redirect-uris.js'
import type { ClientRequest, PageFailure } from './request.js'

/** How a client is called: one without a name by its host. */
export function clientName ({ id, name }: Pick<OAuthClient, 'id' | 'name'>): string {
  return name ?? (isDocumentUrl(id) ? new URL(id).host : id)
}

/** A digest of what a page has shown of a request, and to whom: the consent is for nothing else. */
export function seenOf (
  { userId, generation }: Pick<User, 'userId' | 'generation'>,
  { client, redirectUri, resource, scopes, challenge, state }: ClientRequest
): string {
  const shown = [userId, generation, client.id, client.name, redirectUri, resource.url, scopes, challenge, state]
  return hash('sha256', JSON.stringify(shown), 'base64url')
}

export function consentPage (
  auth: AuthContext, { request, texts }: View,
  { asked, present, waitingId, path }:
  { asked: ClientRequest, present: CurrentUser, waitingId: string, path: string }
): Page {
  const { oauth } = texts
  const { client, redirectUri, resource, scopes } = asked
  const name = clientName(client)
  const user = nameOf(present.record.principal)
  const hidden = { waiting: waitingId, seen: seenOf(present.user, asked), error_next: path }
  return {
    title: filled(oauth.title, { client: name }),
    // Browsers apply the policy to the redirects behind the form, to those of apps too.
    leadsElsewhere: true,
    content: [
      html`<p>${sentence(oauth.text, { client: name, user })}</p>`,
      origins(texts, client, redirectUri),
      scopeList(texts, resource, scopes),
      htmlForm({
        action: auth.formPaths.get('oauth/authorize'),
        hidden,
        fields: [],
        submit: oauth.allow,
        choice: { name: 'decision', value: 'allow', other: 'deny', otherSubmit: oauth.deny }
      }),
      html`<p class="faint">${oauth.until}</p>`,
      action(auth.formPaths.get('logout'), { next: signInPath(auth, request, path), error_next: path }, oauth.another, {
        look: 'quiet'
      })
    ]
  }
}

/** Where a client is from, and where the browser goes: what a user can tell a false one by. */
export function origins ({ oauth }: Texts, { id }: OAuthClient, redirectUri: string): Content {
  const kind = kindOf(redirectUri)
  return html`<ul>
${isDocumentUrl(id) && html`<li>${sentence(oauth.from, { host: new URL(id).host })}</li>`}
<li>${kind === 'https' ? sentence(oauth.returns, { host: shownTarget(redirectUri) }) : oauth[kind]}</li>
</ul>`
}

/** What scopes allow, in the language of the page. */
export function scopeList (texts: Texts, { scopes: known }: Resource, scopes: readonly string[]): Content {
  return section(texts.oauth.scopes, html`<ul>${scopes.map(scope =>
    html`<li>${wordsIn(known.get(scope) ?? scope, texts.language)}</li>`)}</ul>`)
}

/** Says why a request cannot be answered; the browser stays here. */
export function failurePage (auth: AuthContext, { request, reply, texts }: View, why: PageFailure | 'expired'): Page {
  reply.code(400)
  return {
    title: texts.oauth.failed,
    content: [alert(texts.oauth[why]), waysOn(auth, request, texts)]
  }
}
