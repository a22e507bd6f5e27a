import { type AuthContext, hasFactors, hasMails, hasPasswords } from '../../context.js'
import { type CurrentUser, currentUser } from '../../current-user/current.js'
import { deviceOf } from '../../pages/device.js'
import {
  action, button, currentPasswordField, field, form, nameField, newPasswordField, section, usernameField
} from '../../pages/form.js'
import { type Content, type Html, html } from '../../pages/html.js'
import { passkeySignal } from '../../pages/passkey-form.js'
import { type Texts, dateIn, filled } from '../../pages/texts.js'
import { type UserSession, sessionsOfUser } from '../../sign-in/user-sessions.js'
import { pathOf } from '../../web/act.js'
import { type Targets, page, redirected } from '../../web/page.js'
import { hasIcons, pathOfPage, providerLabel, providerLinks, signInPath } from './parts.js'

/** What the parts of the page show. */
interface AccountView extends Pick<CurrentUser, 'user' | 'links'> {
  readonly auth: AuthContext
  readonly texts: Texts
  readonly hasPassword: boolean
  /** Where forms go after a change. */
  readonly saved: Targets
  /** Where forms go after a mail was sent. */
  readonly sent: Targets
  /** Where the forms go that sign the user out. */
  readonly left: Targets
}

/** The page on which the signed-in user sees and changes their account. */
export const account = page({ path: '/pages/account' }, async (auth, { request, reply, texts }) => {
  const { common, account, factors } = texts
  const present = await currentUser(auth, request)
  const here = pathOfPage(auth, 'account')
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const { user, links } = present
  const { secondFactor } = auth.pages.application
  const after = (params: Record<string, string>): Targets => ({ next: here, error_next: here, ...params })
  const left = { next: signInPath(auth, request), error_next: here, done: 'signed_out' }
  const view: AccountView = {
    auth,
    texts,
    user,
    links,
    hasPassword: hasPasswords(auth) && links.some(({ provider }) => provider === 'local'),
    saved: after({ done: 'saved' }),
    sent: after({ done: 'sent' }),
    left
  }
  const sessions = auth.listedSessions === null ? null : await sessionsOfUser(auth, user.userId, request)
  const passkeys = user.factors?.includes('passkey') === true ? auth.factors.passkeys : null
  const logout = pathOf(auth, 'logout')
  const signedOut = { ...left, provider: auth.signOutSealer && 'true' }
  return {
    title: account.title,
    script: passkeys && auth.passkeyPaths && auth.passkeyPaths.script,
    hasIcons: hasIcons(auth),
    content: [
      passkeys && passkeySignal('current-user-details', { ...passkeys.userDetails(user) }),
      nameSection(view),
      emailSection(view),
      passwordSection(view),
      methodsSection(view),
      hasFactors(auth) && secondFactor && html`<section>${button(secondFactor, factors.title)}</section>`,
      sessions && devicesSection(view, sessions),
      deleteSection(view),
      html`<section>${action(logout, signedOut, common.signOut)}${
        action(logout, { ...signedOut, everywhere: 'on' }, account.signOutEverywhere, { isDanger: true })}</section>`
    ]
  }
})

function nameSection ({ auth, texts: { common, account }, user, saved }: AccountView): Html {
  return section(common.name, form({
    action: pathOf(auth, 'pages/name'),
    hidden: saved,
    fields: nameField(common.name, user.name),
    submit: account.nameSubmit
  }))
}

function emailSection ({ auth, texts: { common, account }, user, hasPassword, sent }: AccountView): Content {
  const { email, emailVerified } = user
  const state = emailVerified ? account.confirmed : account.unconfirmed
  return email !== null && section(common.email, html`<p>${email} <small>${state}</small></p>
${!emailVerified && hasMails(auth) && action(pathOf(auth, 'local/verify-email'), sent, account.sendAgain)}
${hasMails(auth, 'changeEmail') && form({
  action: pathOf(auth, 'local/change-email'),
  hidden: sent,
  fields: [
    field({ name: 'email', label: account.newEmail, type: 'email', autocomplete: 'email' }),
    hasPassword && currentPasswordField(common.currentPassword)
  ],
  submit: account.emailSubmit
})}`)
}

function passwordSection ({ auth, texts: { common, account }, user, hasPassword, saved }: AccountView): Content {
  const { local } = auth
  const isOffered = hasPassword ? hasMails(auth, 'changePassword') : user.emailVerified && hasMails(auth, 'setPassword')
  return local && isOffered && section(common.password, form({
    action: pathOf(auth, hasPassword ? 'local/change-password' : 'local/set-password'),
    hidden: saved,
    fields: [
      usernameField(common.email, user.email),
      hasPassword && currentPasswordField(common.currentPassword),
      newPasswordField(common, common.newPassword, local.minPasswordLength)
    ],
    submit: hasPassword ? account.passwordSubmit : account.setPassword
  }))
}

function methodsSection ({ auth, texts: { common, account }, links, saved }: AccountView): Html {
  const names = links.map(({ provider }) => provider)
  const others = auth.providers.map(({ name }) => name).filter(name => !names.includes(name))
  return section(account.methodsTitle, html`<ul>
${links.map(({ provider, claims: { email } }) => {
  const shown = provider === 'local' ? common.password : providerLabel(auth, provider)
  const label = filled(account.removeMethod, { provider: shown })
  return html`<li><span>${shown} <small>${email}</small></span>${links.length < 2
    ? html`<small>${account.onlyMethod}</small>`
    : action(pathOf(auth, 'pages/unlink'), { ...saved, provider }, account.remove, { label })}</li>`
})}
</ul>
${providerLinks(auth, account.add, others, { ...saved, link: 'true' })}`)
}

function devicesSection ({ auth, texts, saved }: AccountView, sessions: readonly UserSession[]): Html {
  const { language, common, account } = texts
  const canEnd = auth.local?.accountRoutes.sessionsEnd === true
  return section(account.devicesTitle, html`<ul>
${sessions.map(({ id, current, lastSeenAt, userAgent }) => {
  const device = deviceOf(userAgent) ?? account.unknownDevice
  const used = current ? account.thisDevice : filled(account.lastUsed, { date: dateIn(language, lastSeenAt) })
  const label = filled(account.endSession, { device })
  return html`<li><span>${device} <small>${used}</small></span>${!current && canEnd &&
    action(pathOf(auth, 'local/sessions/end'), { ...saved, id }, common.signOut, { label })}</li>`
})}
</ul>`)
}

function deleteSection ({ auth, texts: { common, account }, hasPassword, left }: AccountView): Content {
  return hasMails(auth, 'deleteAccount') && section(account.deleteSubmit, [html`<p>${account.deleteText}</p>`, form({
    action: pathOf(auth, 'local/delete-account'),
    hidden: { ...left, done: 'deleted' },
    fields: hasPassword && currentPasswordField(common.currentPassword),
    submit: account.deleteSubmit,
    isDanger: true
  })])
}
