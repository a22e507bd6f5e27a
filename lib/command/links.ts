import { type User, isBlocked } from '../accounts/account.js'
import { AuthError, OptionsError } from '../errors.js'
import { LocalIdentityProvider } from '../local-identity-provider.js'
import { LINK_LIFETIMES, type LinkMailKind } from '../mails/mail.js'
import { hasMailbox, linkWith } from '../mails/mail-links.js'
import { putOperatorSignIn } from '../mails/operator-link.js'
import { resolveOptions } from '../options.js'
import type { SqlAuthStore } from '../store/sql.js'
import { newKey } from '../tokens/token-keys.js'
import type { Values } from './options.js'

/** Checks what links need, as the application does, and returns what makes a link. */
export function linkMaker ({ 'base-url': baseUrl, prefix, issuer }: Values) {
  if (baseUrl === undefined) throw new OptionsError('--base-url is required: the option baseUrl of the application')
  const { LOCAL_IDP_SECRET, SVC_AUTH_DATA_SECRET } = process.env
  // An application with a signing key, which is not asked for, signs links with the other secret.
  const signingKey = LOCAL_IDP_SECRET === undefined && SVC_AUTH_DATA_SECRET !== undefined ? newKey() : undefined
  const local = new LocalIdentityProvider({ issuer, signingKey, sendMail () {} })
  const { mailTokens, site, ...options } = resolveOptions({ baseUrl, prefix, local }, { session: true })
  const base = new URL(site.routePath(`${options.prefix}/`), baseUrl)

  /** Makes a link of the first kind that the application has a page for. */
  return async (store: SqlAuthStore, user: User, kinds: readonly LinkMailKind[]) => {
    if (!hasMailbox(user) || mailTokens === null) throw refused('The user has no e-mail, which a link is about.')
    if (isBlocked(user)) throw new AuthError('blocked')
    for (const kind of kinds) {
      const link = kind === 'sign-in' ? await putOperatorSignIn(store.entries, user) : { ...user, to: null }
      const token = await mailTokens.issue(kind, link)
      const url = linkWith(token, kind, base)
      const status = await statusOf(url, token).catch(() => null)
      if (status === null) process.stderr.write(`${base.origin} does not answer, so the link was not tried.\n`)
      if (status === null || status < 400) return { url, expiresIn: LINK_LIFETIMES[kind] }
      if (status !== 404) {
        throw refused(`${base} does not know the link: it has another database, LOCAL_IDP_SECRET or issuer.`)
      }
    }
    throw refused(`${base} has no page for the link: correct --base-url and --prefix, ` +
      'or give its LocalIdentityProvider sendMail and signInByMail.')
  }
}

/** Opens a link, which uses nothing. The page of a link that does not work lacks the token. */
async function statusOf (url: string, token: string): Promise<number> {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(5000) })
  return response.ok && !(await response.text()).includes(token) ? 401 : response.status
}

function refused (message: string): AuthError {
  return new AuthError('unsupported', { message })
}
