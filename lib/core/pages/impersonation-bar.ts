import type { Principal } from '../../authentication.js'
import { type Html, type Texts, html, sentence } from './elements.js'

/** Makes the bar that says as whom a user sees the page, with the button that ends it. */
export function impersonationBarOf (
  { language, impersonation }: Texts,
  { principal, action, next }: { principal: Principal, action: string, next: string | null }
): Html {
  const { userId, claims: { name, email } } = principal
  return html`<form class="svc-auth-impersonation" method="post" action="${action}" lang="${language}">
<p>${sentence(impersonation.text, { user: name ?? email ?? userId })}</p>
${next && html`<input type="hidden" name="next" value="${next}">`}<button>${impersonation.end}</button>
</form>
`
}
