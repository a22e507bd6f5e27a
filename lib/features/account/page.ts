import { type AuthContext, hasFactors, hasPasswords } from '../../core/context.js'
import { type CurrentUser, canSignIn, currentUser } from '../../core/current-user.js'
import {
  type Content, type Html, type SettingsRow, action, dateIn, field, filled, htmlForm, html, nameField, newPasswordField,
  passwordField, row, sentence, usernameField, verbatim
} from '../../core/pages/elements.js'
import { type Targets, type View, page, redirected } from '../../core/pages/page.js'
import {
  hasIcons, nameOf, pathOfPage, providerButtons, providerLabel, signInPath, textIn
} from '../../core/pages/parts.js'
import { withQuery } from '../../core/redirects.js'
import { type UserSession, sessionsOfUser } from '../../core/sign-out.js'
import { canonicalEmail } from '../../email.js'
import { passkeySignal } from '../passkeys/form.js'

interface AccountView extends Pick<CurrentUser, 'user' | 'links'>, Pick<View, 'texts' | 'typed'> {
  readonly auth: AuthContext
  readonly hasPassword: boolean
  /** Makes a row, which is open if its form has failed. */
  readonly rowOf: (name: string, shown: Omit<SettingsRow, 'change'> & { change?: string }) => Html
  readonly targets: (row: string, after?: { done?: 'sent', open?: string }) => Targets
  /** Where the forms go that sign the user out. */
  readonly left: Targets
}

export const accountPage = page({ path: '/pages/account' }, async (auth, shown) => {
  const { request, reply, texts, typed, opened, next } = shown
  const { common, signIn, account, factors } = texts
  const present = await currentUser(auth, request)
  const here = pathOfPage(auth, 'account')
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const { user, links, record: { principal } } = present
  const { secondFactor } = auth.redirects.application
  const left = {
    next: signInPath(auth, request), error_next: here, done: 'signed_out', provider: auth.signOutSealer && 'true'
  }
  const view: AccountView = {
    auth,
    texts,
    typed,
    user,
    links,
    left,
    hasPassword: hasPasswords(auth) && links.some(({ provider }) => provider === 'local'),
    rowOf: (name, shown) => row({ change: account.change, isOpen: opened === name, ...shown }),
    targets: (row, { done = 'saved', open = null } = {}) => ({
      next: withQuery(here, { open, next }), error_next: withQuery(here, { open: row, next }), done
    })
  }
  const sessions = auth.listedSessions === null ? null : await sessionsOfUser(auth, user.userId, request)
  const passkeys = user.factors?.includes('passkey') === true ? auth.factors.passkeys : null
  const kinds = [['totp', factors.app], ['passkey', factors.passkey]] as const
  const own = kinds.flatMap(([kind, name]) => user.factors?.includes(kind) === true ? name : [])
  return {
    title: account.title,
    isWide: true,
    script: passkeys && auth.passkeyPaths && auth.passkeyPaths.script,
    hasIcons: hasIcons(auth),
    content: [
      passkeys && passkeySignal('current-user-details', { ...passkeys.userDetails(user) }),
      html`<div class="item"><span>${sentence(signIn.signedInAs, { user: nameOf(principal) })}</span>${
        action(auth.formPaths.get('logout'), left, common.signOut)}</div>`,
      nameRow(view),
      emailRow(view),
      passwordRow(view),
      methodsRow(view),
      hasFactors(auth) && secondFactor && view.rowOf('security', {
        title: factors.title, state: own.join(', ') || account.off, href: secondFactor
      }),
      devicesRow(view, sessions),
      deleteRow(view)
    ]
  }
})

function nameRow ({ auth, texts: { common, account }, user: { name }, typed, rowOf, targets }: AccountView): Html {
  const fields = nameField(common.name, textIn(typed.name) ?? name)
  const content = htmlForm({
    action: auth.formPaths.get('pages/name'), hidden: targets('name'), fields, submit: account.nameSubmit
  })
  return rowOf('name', { title: common.name, state: verbatim(name) ?? account.notSet, content })
}

function emailRow (view: AccountView): Content {
  const { auth, texts: { common, account }, user: { email, emailVerified, emailDisputed }, links, typed } = view
  const sent = view.targets('email', { done: 'sent' })
  const newEmail = { name: 'email', label: account.newEmail, type: 'email', autocomplete: 'email' } as const
  // Of a provider that does not vouch for it.
  const [proposal] = email === null ? links.flatMap(({ claims }) => canonicalEmail(claims.email ?? '') ?? []) : []
  const change = htmlForm({
    action: auth.formPaths.get('local/change-email'),
    hidden: sent,
    fields: [
      usernameField(null, email),
      field({ ...newEmail, value: textIn(typed.email) ?? proposal ?? null }),
      view.hasPassword && passwordField(common.currentPassword, 'current')
    ],
    submit: email === null ? account.addEmail : account.emailSubmit
  })
  const again = email !== null && !emailVerified &&
    action(auth.formPaths.get('local/verify-email'), sent, account.sendAgain, { look: 'quiet' })
  return (email !== null || change) && view.rowOf('email', {
    title: common.email,
    state: email === null
      ? account.notSet
      : html`${verbatim(email)} <small>${emailVerified ? account.confirmed : account.unconfirmed}</small>`,
    content: change,
    more: again && [emailDisputed && html`<p>${account.disputed}</p>`, again]
  })
}

function passwordRow ({ auth, texts: { common, account }, user, hasPassword, rowOf, targets }: AccountView): Content {
  const { local } = auth
  const content = local && (hasPassword || user.emailVerified) && htmlForm({
    action: auth.formPaths.get(hasPassword ? 'local/change-password' : 'local/set-password'),
    hidden: targets('password'),
    fields: [
      usernameField(null, user.email),
      hasPassword && passwordField(common.currentPassword, 'current'),
      newPasswordField(common, common.newPassword, local.minPasswordLength)
    ],
    submit: hasPassword ? account.passwordSubmit : account.setPassword
  })
  return (hasPassword || content) &&
    rowOf('password', { title: common.password, state: hasPassword ? account.set : account.notSet, content })
}

function methodsRow ({ auth, texts: { common, account }, user, links, rowOf, targets }: AccountView): Html {
  const names = links.map(({ provider }) => provider)
  const others = auth.providers.map(({ name }) => name).filter(name => !names.includes(name))
  // Whom the application has created is known by an address.
  const own = new Map([['local', common.password], ['application', common.email]])
  const labelOf = (name: string): string => own.get(name) ?? providerLabel(auth, name)
  const [unlink, hidden] = [auth.formPaths.get('pages/unlink'), targets('methods', { open: 'methods' })]
  const isNeeded = (name: string): boolean => links.length < 2 ||
    !canSignIn(auth, user, links.filter(({ provider }) => provider !== name))
  const isOnly = names.every(isNeeded)
  const items = links.map(({ provider, claims: { email } }) => {
    const more = { label: filled(account.removeMethod, { provider: labelOf(provider) }), look: 'danger' } as const
    return html`<li><span>${labelOf(provider)} <small>${verbatim(email ?? null)}</small></span>${
      !isNeeded(provider) && action(unlink, { ...hidden, provider }, account.remove, more)}</li>`
  })
  return rowOf('methods', {
    title: account.methodsTitle,
    state: html`${names.map(labelOf).join(', ')} ${isOnly && html`<small>${account.onlyMethod}</small>`}`,
    content: (!isOnly || others.length > 0) &&
      [html`<ul>${items}</ul>`, providerButtons(auth, account.add, others, { ...hidden, done: null, link: 'true' })]
  })
}

function devicesRow (
  { auth, texts, rowOf, targets, left }: AccountView, sessions: readonly UserSession[] | null
): Html {
  const { language, common, account } = texts
  const hidden = targets('devices', { open: 'devices' })
  const items = sessions?.map(({ id, current, lastSeenAt, userAgent }) => {
    const device = deviceOf(userAgent) ?? account.unknownDevice
    const used = current ? account.thisDevice : filled(account.lastUsed, { date: dateIn(language, lastSeenAt) })
    const label = filled(account.endSession, { device })
    return html`<li><span>${device} <small>${used}</small></span>${!current &&
      action(auth.formPaths.get('local/sessions/end'), { ...hidden, id }, common.signOut, { label })}</li>`
  })
  const everywhere = { ...left, everywhere: 'on' }
  return rowOf('devices', {
    title: account.devicesTitle,
    state: items && filled(account.signedIn, { count: String(items.length) }),
    content: [
      items && html`<ul>${items}</ul>`,
      action(auth.formPaths.get('logout'), everywhere, account.signOutEverywhere, { look: 'quiet' })
    ]
  })
}

function deleteRow (view: AccountView): Content {
  const { auth, texts: { common, account }, user, hasPassword, left, rowOf, targets } = view
  const content = htmlForm({
    action: auth.formPaths.get('local/delete-account'),
    hidden: { ...targets('delete'), next: left.next, done: 'deleted' },
    fields: hasPassword && [usernameField(null, user.email), passwordField(common.currentPassword, 'current')],
    submit: account.deleteSubmit,
    look: 'danger'
  })
  return content && rowOf('delete', {
    title: account.deleteSubmit, state: account.deleteText, change: account.delete, isDanger: true, content
  })
}

/** Browsers by what only they write, the most particular first: most claim to be others too. */
const BROWSERS: ReadonlyArray<readonly [name: string, mark: RegExp]> = [
  ['Edge', /\bEdgA?\//], ['Opera', /\bOPR\//], ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//], ['Chrome', /\b(?:Chrome|CriOS)\//], ['Safari', /\bVersion\/.*\bSafari\//]
]

const SYSTEMS: ReadonlyArray<readonly [name: string, mark: RegExp]> = [
  ['iPhone', /\biPhone\b/], ['iPad', /\biPad\b/], ['Android', /\bAndroid\b/], ['Windows', /\bWindows\b/],
  ['ChromeOS', /\bCrOS\b/], ['macOS', /\bMacintosh\b/], ['Linux', /\bLinux\b/]
]

/**
 * Returns the words by which a user knows a device, such as `Firefox · Windows`; null where the
 * header says neither. It is a guess: clients write what they like.
 */
export function deviceOf (userAgent: string | null): string | null {
  const named = [BROWSERS, SYSTEMS].flatMap(list => list.find(([, mark]) => mark.test(userAgent ?? ''))?.[0] ?? [])
  return named.length === 0 ? null : named.join(' · ')
}
