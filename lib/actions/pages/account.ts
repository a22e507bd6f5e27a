import { type AuthContext, hasFactors, hasMails, hasPasswords } from '../../context.js'
import { type CurrentUser, currentUser } from '../../current-user/current.js'
import { deviceOf } from '../../pages/device.js'
import {
  action, currentPasswordField, field, form, nameField, newPasswordField, row, usernameField
} from '../../pages/form.js'
import { type Content, type Html, html } from '../../pages/html.js'
import { passkeySignal } from '../../pages/passkey-form.js'
import { dateIn, filled } from '../../pages/texts.js'
import { type UserSession, sessionsOfUser } from '../../sign-in/user-sessions.js'
import { pathOf } from '../../web/act.js'
import { type Targets, type View, page, redirected, withQuery } from '../../web/page.js'
import { nameOf, pathOfPage, providerLabel, providerLinks, signInPath, textIn } from './parts.js'

/** What the rows of the page show. */
interface AccountView extends Pick<CurrentUser, 'user' | 'links'>, Pick<View, 'texts' | 'typed' | 'opened'> {
  readonly auth: AuthContext
  readonly hasPassword: boolean
  /** Where the forms of a row go: after a failure the row is open again. */
  readonly targets: (row: string, after?: { done?: 'saved' | 'sent', open?: string }) => Targets
  /** Where the forms go that sign the user out. */
  readonly left: Targets
}

/** The page on which the signed-in user sees and changes their account. */
export const account = page({ path: '/pages/account' }, async (auth, { request, reply, texts, typed, opened }) => {
  const { common, signIn, account } = texts
  const present = await currentUser(auth, request)
  const here = pathOfPage(auth, 'account')
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const { user, links, record: { principal } } = present
  const left = { next: signInPath(auth, request), error_next: here, provider: auth.signOutSealer && 'true' }
  const view: AccountView = {
    auth,
    texts,
    typed,
    opened,
    user,
    links,
    hasPassword: hasPasswords(auth) && links.some(({ provider }) => provider === 'local'),
    targets: (row, after) => ({
      next: withQuery(here, { done: 'saved', ...after }), error_next: withQuery(here, { open: row })
    }),
    left
  }
  const sessions = auth.listedSessions === null ? null : await sessionsOfUser(auth, user.userId, request)
  const passkeys = user.factors?.includes('passkey') === true ? auth.factors.passkeys : null
  return {
    title: account.title,
    script: passkeys && auth.passkeyPaths && auth.passkeyPaths.script,
    content: [
      passkeys && passkeySignal('current-user-details', { ...passkeys.userDetails(user) }),
      html`<div class="item"><span>${filled(signIn.signedInAs, { user: nameOf(principal) })}</span>${
        action(pathOf(auth, 'logout'), left, common.signOut)}</div>`,
      nameRow(view),
      emailRow(view),
      passwordRow(view),
      methodsRow(view),
      hasFactors(auth) && securityRow(view),
      devicesRow(view, sessions),
      deleteRow(view)
    ]
  }
})

function nameRow ({ auth, texts: { common, account }, user, typed, opened, targets }: AccountView): Html {
  const isOpen = opened === 'name'
  return row({
    title: common.name,
    state: user.name ?? account.notSet,
    change: account.change,
    isOpen,
    content: form({
      action: pathOf(auth, 'pages/name'),
      hidden: targets('name'),
      fields: nameField(common.name, (isOpen ? textIn(typed.name) : null) ?? user.name),
      submit: account.nameSubmit
    })
  })
}

function emailRow (
  { auth, texts: { common, account }, user, hasPassword, typed, opened, targets }: AccountView
): Content {
  const { email, emailVerified } = user
  const sent = targets('email', { done: 'sent' })
  return email !== null && row({
    title: common.email,
    state: html`${email} <small>${emailVerified ? account.confirmed : account.unconfirmed}</small>`,
    change: account.change,
    isOpen: opened === 'email',
    content: hasMails(auth, 'changeEmail') && form({
      action: pathOf(auth, 'local/change-email'),
      hidden: sent,
      fields: [
        field({
          name: 'email', label: account.newEmail, type: 'email', autocomplete: 'email', value: textIn(typed.email)
        }),
        hasPassword && currentPasswordField(common.currentPassword)
      ],
      submit: account.emailSubmit
    }),
    more: !emailVerified && hasMails(auth) &&
      action(pathOf(auth, 'local/verify-email'), sent, account.sendAgain, { look: 'quiet' })
  })
}

function passwordRow ({ auth, texts: { common, account }, user, hasPassword, opened, targets }: AccountView): Content {
  const { local } = auth
  const isOffered = hasPassword ? hasMails(auth, 'changePassword') : user.emailVerified && hasMails(auth, 'setPassword')
  return local && (hasPassword || isOffered) && row({
    title: common.password,
    state: hasPassword ? account.set : account.notSet,
    change: account.change,
    isOpen: opened === 'password',
    content: isOffered && form({
      action: pathOf(auth, hasPassword ? 'local/change-password' : 'local/set-password'),
      hidden: targets('password'),
      fields: [
        usernameField(common.email, user.email),
        hasPassword && currentPasswordField(common.currentPassword),
        newPasswordField(common, common.newPassword, local.minPasswordLength)
      ],
      submit: hasPassword ? account.passwordSubmit : account.setPassword
    })
  })
}

function methodsRow ({ auth, texts: { common, account }, links, opened, targets }: AccountView): Html {
  const names = links.map(({ provider }) => provider)
  const others = auth.providers.map(({ name }) => name).filter(name => !names.includes(name))
  const labelOf = (name: string): string => name === 'local' ? common.password : providerLabel(name)
  const hidden = targets('methods', { open: 'methods' })
  const isOnly = links.length < 2
  return row({
    title: account.methodsTitle,
    state: html`${names.map(labelOf).join(', ')} ${isOnly && html`<small>${account.onlyMethod}</small>`}`,
    change: account.change,
    isOpen: opened === 'methods',
    content: (!isOnly || others.length > 0) && html`<ul>
${links.map(({ provider, claims: { email } }) => {
  const shown = labelOf(provider)
  const label = filled(account.removeMethod, { provider: shown })
  return html`<li><span>${shown} <small>${email}</small></span>${!isOnly &&
    action(pathOf(auth, 'pages/unlink'), { ...hidden, provider }, account.remove, { label, look: 'danger' })}</li>`
})}
</ul>
${providerLinks(auth, account.add, others, { ...hidden, link: 'true' })}`
  })
}

function securityRow ({ auth, texts: { account, factors }, user }: AccountView): Html {
  const kinds = [['totp', factors.app], ['passkey', factors.passkey]] as const
  const own = kinds.flatMap(([kind, name]) => user.factors?.includes(kind) === true ? name : [])
  return row({
    title: factors.title,
    state: own.length === 0 ? account.off : own.join(', '),
    change: account.change,
    href: pathOfPage(auth, 'factors')
  })
}

function devicesRow ({ auth, texts, opened, targets, left }: AccountView, sessions: readonly UserSession[] | null): Html {
  const { language, common, account } = texts
  const canEnd = auth.local?.accountRoutes.sessionsEnd === true
  const hidden = targets('devices', { open: 'devices' })
  const everywhere = { ...left, everywhere: 'on' }
  return row({
    title: account.devicesTitle,
    state: sessions && filled(account.signedIn, { count: String(sessions.length) }),
    change: account.change,
    isOpen: opened === 'devices',
    content: [
      sessions && html`<ul>
${sessions.map(({ id, current, lastSeenAt, userAgent }) => {
  const device = deviceOf(userAgent) ?? account.unknownDevice
  const used = current ? account.thisDevice : filled(account.lastUsed, { date: dateIn(language, lastSeenAt) })
  const label = filled(account.endSession, { device })
  return html`<li><span>${device} <small>${used}</small></span>${!current && canEnd &&
    action(pathOf(auth, 'local/sessions/end'), { ...hidden, id }, common.signOut, { label })}</li>`
})}
</ul>`,
      action(pathOf(auth, 'logout'), everywhere, account.signOutEverywhere, { look: 'quiet' })
    ]
  })
}

function deleteRow ({ auth, texts: { common, account }, hasPassword, opened, left, targets }: AccountView): Content {
  const { error_next } = targets('delete')
  return hasMails(auth, 'deleteAccount') && row({
    title: account.deleteSubmit,
    state: account.deleteText,
    change: account.delete,
    isDanger: true,
    isOpen: opened === 'delete',
    content: form({
      action: pathOf(auth, 'local/delete-account'),
      hidden: { next: left.next, error_next },
      fields: hasPassword && currentPasswordField(common.currentPassword),
      submit: account.deleteSubmit,
      look: 'danger'
    })
  })
}
