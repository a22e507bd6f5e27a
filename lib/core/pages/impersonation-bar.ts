import type { Principal } from '../../authentication.js'
import { type Html, type Texts, filled, html, sentence } from './elements.js'

/** Makes the bar that says as whom a user sees the page, with the button that ends it. */
export function impersonationBarOf (
  { language, impersonation }: Texts,
  { principal, action, next }: { principal: Principal, action: string, next: string | null }
): Html {
  const { userId, claims: { name, email } } = principal
  const user = name ?? email ?? userId
  // With a name, the form is a landmark: screen readers list it, wherever on a page it is.
  return html`<form class="svc-auth-impersonation" method="post" action="${action}" lang="${language}" aria-label="${
    filled(impersonation.text, { user })}">
<p>${sentence(impersonation.text, { user })}</p>
${next && html`<input type="hidden" name="next" value="${next}">`}<button>${impersonation.end}</button>
</form>
`
}
