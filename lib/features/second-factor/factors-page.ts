import { pathOf } from '../../core/act.js'
import type { AuthContext } from '../../core/context.js'
import { currentUser } from '../../core/current-user.js'
import { missingAuthentication } from '../recent.js'
import { withQuery } from '../../core/redirects.js'
import {
  type Content, type Html, action, button, dateIn, filled, html, htmlForm, item, link, row, section, verbatim
} from '../../core/pages/elements.js'
import { type Section, page, redirected } from '../../core/pages/page.js'
import { maySendMailCode } from './enrolment.js'
import { enrolPage } from './authenticator.js'
import { type UserFactor, listFactors } from '../app-auth/users.js'
import { pathOfPage, signInPath, textIn } from '../pages/parts.js'
import { hasFactors, scriptOf } from '../../core/methods.js'
import { type FactorItem, type FactorPages, type FactorsView, factorNameField } from './factor-pages.js'
import { RECOVERY } from './totp.js'

export const factorsPage = page({
  path: '/pages/factors', when: hasFactors, whileImpersonating: true
}, async (auth, view) => {
  const { request, reply, texts, typed, next, isLost } = view
  const { common, factors, confirm } = texts
  const here = pathOfPage(auth, 'factors', next)
  const present = await currentUser(auth, request)
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const { user } = present
  const ofLost = withQuery(pathOf(auth, 'pages/factors'), { next, lost: 'true' })
  const missing = missingAuthentication(auth, present)
  const mayLose = missing !== null && await maySendMailCode(auth, present)
  if (isLost && mayLose) {
    const targets = { next: here, error_next: ofLost, lost: 'true' }
    return enrolPage(auth, view, { targets, asksMailCode: true, back: here })
  }
  const own = await listFactors(auth.accounts, user.userId)
  const { account } = auth.redirects.application
  const again = missing && auth.redirects.forStep(request, 'reauthenticate', here, missing.length > 0)
  const saved = { next: next ?? here, error_next: here, done: 'saved' }
  const shown: FactorsView = {
    auth, texts, typed, user, own, saved, look: own.length === 0 && again === null ? 'primary' : 'plain'
  }
  const parts = await partsOf(auth)
  // On a page with an app to set up, that is the first button.
  const below = auth.formPaths.has('local/totp/enroll') ? 'plain' : shown.look
  const sections = parts.flatMap(({ section }) => section?.({ ...shown, look: below }) ?? [])
  return {
    title: factors.title,
    isWide: true,
    script: scriptOf(sections),
    content: [
      again && [html`<p>${factors.confirmText}</p>`, button(again, confirm.title, 'primary')],
      mayLose && html`<p>${link(ofLost, factors.lost)}</p>`,
      listSection(shown, parts),
      sections.map(({ content }) => content),
      account && button(account, common.back, 'quiet')
    ]
  }
})

/** What each method shows, whether or not this process offers it. */
async function partsOf (auth: Pick<AuthContext, 'methods'>) {
  return Promise.all(auth.methods.map(async ({ name, factor }) => ({ ...await factor?.pages?.(), name })))
}

type Parts = Awaited<ReturnType<typeof partsOf>>

function listSection (view: FactorsView, parts: Parts): Content {
  const items = view.own.flatMap(factor => {
    const { item } = parts.find(({ name }) => name === factor.kind) ?? {}
    return item === undefined ? [] : listed(view, factor, item(view, factor))
  })
  const setUps = parts.flatMap(({ setUp }) => setUp?.(view) || [])
  return (items.length > 0 || setUps.length > 0) && section(view.texts.factors.list, [
    items.length > 0 && html`<ul>${items}</ul>`, setUps
  ])
}

function listed (
  { auth, texts, typed, saved }: FactorsView,
  { id, createdAt, lastUsedAt }: UserFactor,
  { name, kind, remove, rename }: FactorItem
): Html {
  const { language, account, factors } = texts
  const label = filled(account.removeMethod, { provider: name })
  const facts = [
    kind,
    filled(factors.added, { date: dateIn(language, createdAt) }),
    lastUsedAt && filled(account.lastUsed, { date: dateIn(language, lastUsedAt) })
  ]
  const hidden = rename === null ? saved : { ...saved, id }
  const renamed = typed.id === id ? textIn(typed.name) : null
  const title = html`${rename === null ? name : verbatim(name)} <small>${facts.filter(Boolean).join(' · ')}</small>`
  const form = rename !== null && htmlForm({
    action: auth.formPaths.get(rename),
    hidden,
    fields: factorNameField(texts, renamed ?? name),
    submit: account.nameSubmit
  })
  const renaming = form && html`<details class="names"${renamed !== null && html` open`}><summary class="button small"
 aria-label="${factors.rename}: ${name}">${factors.rename}</summary>${form}</details>`
  const removal = action(auth.formPaths.get(remove), hidden, account.remove, { label, look: 'small danger' })
  return item(title, renaming, removal)
}

export const RECOVERY_PAGES: FactorPages = {
  section ({ auth, texts: { factors }, own, saved }) {
    const codes = own.find(({ kind }) => kind === RECOVERY)
    if (codes === undefined) return null
    const renew = action(auth.formPaths.get('local/recovery-codes'), saved, factors.newCodes, { look: 'plain' })
    return {
      content: row({
        title: factors.recoveryTitle,
        state: filled(factors.codesLeft, { count: String(codes.codesLeft) }),
        change: factors.newCodes,
        content: renew && [html`<p>${factors.newCodesText}</p>`, renew]
      })
    }
  }
}

/** What the account page shows of factors. */
export const factorsSection: Section = {
  name: 'security',
  order: 70,
  async show ({ auth, texts, user, rowOf }) {
    const { secondFactor: href } = auth.redirects.application
    if (!hasFactors(auth) || href === null) return null
    const own = (await partsOf(auth)).flatMap(({ name, label }) =>
      user.factors?.some(kind => kind === name) === true ? label?.(texts) ?? [] : [])
    return rowOf({ title: texts.factors.title, state: own.join(' · ') || texts.account.off, href })
  }
}
