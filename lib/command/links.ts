import { type User, isBlocked } from '../accounts/account.js'
import { Accounts } from '../accounts/accounts.js'
import { withoutUndefined } from '../base/values.js'
import { AuthError, OptionsError } from '../errors.js'
import { LocalIdentityProvider } from '../features/local/local-identity-provider.js'
import { LINK_LIFETIMES } from '../core/mail.js'
import { hasMailbox, linkWith, putOperatorSignIn } from '../core/mail-links.js'
import { type GivenOptions, resolveOptions } from '../options.js'
import { settingsIn } from '../secrets.js'
import type { SqlAuthStore } from '../engines/sql.js'
import { newKey } from '../features/tokens/token-keys.js'
import { OF_LINKS, type ParsedOptions, note } from './options.js'

/** Checks what links need, as the application does, and returns what makes one. */
export function linkMaker (values: ParsedOptions, app: GivenOptions | null) {
  const { 'base-url': baseUrl, prefix, issuer } = values
  if (app !== null && issuer !== undefined) throw new OptionsError('--issuer must be absent: --app has it')
  const given = { ...(app ?? optionsOf(values)), ...withoutUndefined({ baseUrl, prefix }), session: undefined }
  const { mailTokens, site, local, ...options } = resolveOptions(given, { session: true })
  const hasPasswords = local?.accountRoutes.forgotPassword === true
  const signsIn = local?.signInByMail != null
  if (mailTokens === null || site.baseUrl === null || !(hasPasswords || signsIn)) {
    throw new OptionsError('The application has no such links: they need sendMail, and passwords or signInByMail')
  }
  const base = new URL(site.routePath(`${options.prefix}/`), site.baseUrl)

  return async (store: SqlAuthStore, user: User, isNew: boolean) => {
    if (!hasMailbox(user)) throw new AuthError('unsupported', { message: 'The user has no e-mail for a link.' })
    if (isBlocked(user)) throw new AuthError('blocked')
    const links = await new Accounts(store).links(user.userId)
    const hasMethod = (app !== null && signsIn && !isNew) || user.factors?.includes('passkey') === true ||
      links.some(({ provider }) => provider !== 'application')
    // Not for an address that nobody has confirmed: a password chosen by a link would prove it.
    const kind = hasPasswords && user.emailVerified && !hasMethod ? 'reset-password' : 'sign-in'
    const need = kind === 'sign-in' ? 'signInByMail' : 'passwords'
    if (app === null) note(`The link works where the application has sendMail and ${need}; --app checks that.`)
    else if (kind === 'sign-in' && !signsIn) throw new OptionsError(`The application lacks ${need}, which a link needs`)
    const link = kind === 'sign-in' ? await putOperatorSignIn(store.entries, user) : { ...user, to: null }
    return { url: linkWith(await mailTokens.issue(kind, link), kind, base), expiresIn: LINK_LIFETIMES[kind] }
  }
}

/** The options of an application of which only the settings and the arguments are known. */
function optionsOf (values: ParsedOptions): GivenOptions {
  const missing = OF_LINKS.filter(name => values[name] === undefined).map(name => `--${name}`)
  if (missing.length > 0) {
    throw new OptionsError(`A link needs ${missing.join(', ')} as the application has them (by default ` +
      '--issuer svc-auth-local and --prefix /auth), or --app with a module that exports its options')
  }
  // An application with a signing key, which is not asked for, signs links with the other secret.
  const isSet = (name: string): boolean => settingsIn(name).length > 0
  const signingKey = isSet('SVC_AUTH_DATA_SECRET') && !isSet('LOCAL_IDP_SECRET') ? newKey() : undefined
  return { local: new LocalIdentityProvider({ issuer: values.issuer, signingKey, sendMail () {}, signInByMail: true }) }
}
