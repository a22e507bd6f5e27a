import { deviceOf } from '../../core/device.js'
import { type Content, action, dateIn, filled, html, item, sentence } from '../../core/pages/elements.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { nameOf } from '../pages/parts.js'
import { sessionsOfUser } from './list.js'

/** Who is signed in, and where. */
export const SESSION_SECTIONS: readonly Section[] = [
  { name: 'sign-out', order: 20, show: signOutItem }, { name: 'devices', order: 80, show: devicesRow }
]

function signOutItem ({ auth, texts: { common, signIn }, record: { principal }, left }: AccountView): Content {
  return html`<div class="line"><span class="what">${sentence(signIn.signedInAs, { user: nameOf(principal) })}</span>${
    action(auth.formPaths.get('logout'), left, common.signOut, { look: 'small' })}</div>`
}

async function devicesRow ({ auth, request, user, texts, rowOf, targets, left }: AccountView): Promise<Content> {
  const { language, common, account, impersonation } = texts
  const sessions = auth.listedSessions === null ? null : await sessionsOfUser(auth, user.userId, request)
  const hidden = targets({ open: true })
  const items = sessions?.map(({ id, current, lastSeenAt, userAgent, impersonator }) => {
    const device = impersonator === null ? deviceOf(userAgent) ?? account.unknownDevice : impersonation.listed
    const used = current ? account.thisDevice : filled(account.lastUsed, { date: dateIn(language, lastSeenAt) })
    const label = filled(account.endSession, { device })
    return item(
      html`${device} <small>${used}</small>`,
      !current && action(auth.formPaths.get('local/sessions/end'), { ...hidden, id }, common.signOut, {
        label, look: 'small'
      })
    )
  })
  const everywhere = { ...left, everywhere: 'on' }
  return rowOf({
    title: account.devicesTitle,
    state: items && filled(account.signedIn, { count: String(items.length) }),
    content: [
      items && html`<ul>${items}</ul>`,
      action(auth.formPaths.get('logout'), everywhere, account.signOutEverywhere, { look: 'plain' })
    ]
  })
}
