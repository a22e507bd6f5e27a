import type { User } from '../../accounts/account.js'
import { type AuthContext, hasFactors, hasSecondFactor } from '../../core/context.js'
import { type UserFactor, currentUser, listFactors } from '../../core/current-user.js'
import { missingAuthentication } from '../../core/recent.js'
import type { PasskeyCeremonies } from '../passkeys/ceremonies.js'
import { withQuery } from '../../core/redirects.js'
import {
  type Content, type Html, type Texts, action, button, dateIn, field, filled, htmlForm, html, row, section, verbatim
} from '../../core/pages/elements.js'
import { type PasskeyPaths, passkeyForm, passkeySignal } from '../passkeys/form.js'
import { pathOf } from '../../core/act.js'
import { type AccountView, type Section, type Targets, type View, page, redirected } from '../../core/pages/page.js'
import { maySendMailCode } from './enrolment.js'
import { pathOfPage, signInPath, textIn } from '../../core/pages/parts.js'
import { enrolPage } from './authenticator.js'

interface FactorsView extends Pick<View, 'texts' | 'typed'> {
  readonly auth: AuthContext
  readonly own: readonly UserFactor[]
  readonly saved: Targets
  /** How the button looks that sets up the first factor. */
  readonly look: 'primary' | 'quiet'
}

export const factorsPage = page({ path: '/pages/factors', when: hasFactors }, async (auth, view) => {
  const { request, reply, texts, typed, next, isLost } = view
  const { common, factors, confirm } = texts
  const here = pathOfPage(auth, 'factors', next)
  const present = await currentUser(auth, request)
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const ofLost = withQuery(pathOf(auth, 'pages/factors'), { next, lost: 'true' })
  const missing = missingAuthentication(auth, present)
  const mayLose = missing !== null && await maySendMailCode(auth, present)
  if (isLost && mayLose) {
    const targets = { next: here, error_next: ofLost, lost: 'true' }
    return enrolPage(auth, view, { targets, asksMailCode: true, back: here })
  }
  const own = await listFactors(auth.accounts, present.user.userId)
  const { passkeyPaths, factors: { passkeys }, redirects: { application: { account } } } = auth
  const again = missing && auth.redirects.forStep(request, 'reauthenticate', here, missing.length > 0)
  const saved = { next: next ?? here, error_next: here, done: 'saved' }
  const look = own.length === 0 && again === null ? 'primary' : 'quiet'
  const shown = { auth, texts, typed, own, saved, look } as const
  return {
    title: factors.title,
    isWide: true,
    script: passkeyPaths && passkeyPaths.script,
    content: [
      again && [html`<p>${factors.confirmText}</p>`, button(again, confirm.title, 'primary')],
      mayLose && html`<p><a href="${ofLost}">${factors.lost}</a></p>`,
      listSection(shown),
      passkeys && passkeyPaths && passkeySection(shown, passkeyPaths, passkeys.userDetails(present.user)),
      codesRow(shown),
      account && html`<section>${button(account, common.back)}</section>`
    ]
  }
})

function listSection (view: FactorsView): Content {
  const { auth, texts: { factors }, own, saved, look } = view
  const listed = own.filter(({ kind }) => kind !== 'recovery')
  const setUp = own.every(({ kind }) => kind !== 'totp') &&
    action(auth.formPaths.get('local/totp/enroll'), saved, factors.setUp, { look })
  return (listed.length > 0 || setUp) && section(factors.list, [
    listed.length > 0 && html`<ul>${listed.map(factor => item(view, factor))}</ul>`, setUp
  ])
}

function item ({ auth, texts, typed, saved }: FactorsView, factor: UserFactor): Html {
  const { id, kind, name, createdAt, lastUsedAt } = factor
  const { language, account, factors } = texts
  const isPasskey = kind === 'passkey'
  const shown = isPasskey ? name ?? id : factors.app
  const label = filled(account.removeMethod, { provider: shown })
  const facts = [
    isPasskey && factors.passkey,
    filled(factors.added, { date: dateIn(language, createdAt) }),
    lastUsedAt && filled(account.lastUsed, { date: dateIn(language, lastUsedAt) })
  ]
  const remove = auth.formPaths.get(isPasskey ? 'local/passkeys/remove' : 'local/totp/remove')
  const hidden = isPasskey ? { ...saved, id } : saved
  const renamed = typed.id === id ? textIn(typed.name) : null
  const title = html`${isPasskey ? verbatim(shown) : shown} <small>${facts.filter(Boolean).join(' · ')}</small>`
  const rename = isPasskey && htmlForm({
    action: auth.formPaths.get('local/passkeys/rename'),
    hidden,
    fields: passkeyNameField(texts, renamed ?? shown),
    submit: account.nameSubmit
  })
  return html`<li><span>${title}</span>${rename &&
    html`<details${renamed !== null && html` open`}><summary aria-label="${factors.rename}: ${shown}">${
      factors.rename}</summary>${rename}</details>`}${
    action(remove, hidden, account.remove, { label, look: 'danger' })}</li>`
}

function passkeySection (
  { auth, texts, typed, own, saved, look }: FactorsView,
  { options }: PasskeyPaths,
  { rpId, userId, ...names }: ReturnType<PasskeyCeremonies['userDetails']>
): Html {
  const { factors } = texts
  const allAcceptedCredentialIds = own.flatMap(({ kind, id }) => kind === 'passkey' ? id : [])
  return section(factors.addPasskey, html`<p>${factors.passkeysText}</p>
${passkeySignal('all-accepted-credentials', { rpId, userId, allAcceptedCredentialIds })}${
passkeySignal('current-user-details', { rpId, userId, ...names })}${passkeyForm(texts, {
  ceremony: 'register',
  options,
  action: auth.formPaths.get('local/passkeys/register'),
  hidden: saved,
  // On a page with an app to set up, that is the first button.
  look: hasSecondFactor(auth) ? 'quiet' : look,
  fields: passkeyNameField(texts, typed.response === undefined ? null : textIn(typed.name), true)
})}`)
}

function passkeyNameField ({ factors }: Texts, value: string | null, isOptional = false): Html {
  const attributes = html` maxlength="64"`
  return field({
    name: 'name', label: factors.passkeyName, type: 'text', autocomplete: 'off', value, isOptional, attributes
  })
}

function codesRow ({ auth, texts: { factors }, own, saved }: FactorsView): Content {
  const codes = own.find(({ kind }) => kind === 'recovery')
  const renew = action(auth.formPaths.get('local/recovery-codes'), saved, factors.newCodes, { look: 'quiet' })
  return codes && row({
    title: factors.recoveryTitle,
    state: filled(factors.codesLeft, { count: String(codes.codesLeft) }),
    change: factors.newCodes,
    content: renew && [html`<p>${factors.newCodesText}</p>`, renew]
  })
}

/** What the account page shows of factors, and tells password managers. */
export const FACTOR_SECTIONS: readonly Section[] = [
  {
    name: 'passkeys',
    order: 10,
    show ({ auth, user }) {
      const details = passkeysFor(auth, user)?.userDetails(user)
      return details && passkeySignal('current-user-details', { ...details })
    },
    script: (auth, user) => passkeysFor(auth, user) && auth.passkeyPaths && auth.passkeyPaths.script
  },
  { name: 'security', order: 70, show: factorsRow }
]

function passkeysFor ({ factors: { passkeys } }: AuthContext, user: User): PasskeyCeremonies | null {
  return user.factors?.includes('passkey') === true ? passkeys : null
}

function factorsRow ({ auth, texts: { account, factors }, user, rowOf }: AccountView): Content {
  const { secondFactor } = auth.redirects.application
  const kinds = [['totp', factors.app], ['passkey', factors.passkey]] as const
  const own = kinds.flatMap(([kind, name]) => user.factors?.includes(kind) === true ? name : [])
  return hasFactors(auth) && secondFactor &&
    rowOf({ title: factors.title, state: own.join(', ') || account.off, href: secondFactor })
}
