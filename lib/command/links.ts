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

  return async (store: SqlAuthStore, user: User, kind: LinkMailKind) => {
    if (!hasMailbox(user) || mailTokens === null) {
      throw new AuthError('unsupported', { message: 'The user has no e-mail, which a link is about.' })
    }
    if (isBlocked(user)) throw new AuthError('blocked')
    const link = kind === 'sign-in' ? await putOperatorSignIn(store.entries, user) : { ...user, to: null }
    return { url: linkWith(await mailTokens.issue(kind, link), kind, base), expiresIn: LINK_LIFETIMES[kind] }
  }
}
