import type { Act } from '../../core/act.js'
import { currentUser } from '../../core/current-user.js'
import {
  type Content, type Html, htmlForm, nameField, row, usernameField, verbatim
} from '../../core/pages/elements.js'
import { type AccountView, type Section, page, redirected } from '../../core/pages/page.js'
import { hasIcons, pathOfPage, signInPath, textIn } from '../pages/parts.js'
import { withQuery } from '../../core/redirects.js'
import { currentPasswordField } from '../password/page.js'

/** Makes the page of the account, of what the features show on it. */
export const accountPage = (sections: readonly Section[]): Act => page({
  path: '/pages/account', whileImpersonating: true
}, async (auth, shown) => {
  const { request, reply, texts: { account }, opened, next } = shown
  const present = await currentUser(auth, request)
  const here = pathOfPage(auth, 'account')
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const viewOf = (name: string): AccountView => ({
    ...shown,
    ...present,
    auth,
    rowOf: shown => row({ change: account.change, isOpen: opened === name, ...shown }),
    targets: ({ done = 'saved', open = false } = {}) => ({
      next: withQuery(here, { open: open ? name : null, next }), error_next: withQuery(here, { open: name, next }), done
    }),
    left: {
      next: signInPath(auth, request), error_next: here, done: 'signed_out', provider: auth.signOutSealer && 'true'
    }
  })
  const [script = null] = sections.flatMap(({ script }) => script?.(auth, present.user) ?? [])
  return {
    title: account.title,
    isWide: true,
    script,
    hasIcons: hasIcons(auth),
    content: await Promise.all(sections.map(({ name, show }) => show(viewOf(name))))
  }
})

/** The name of the user, and the deletion of their account. */
export const ACCOUNT_SECTIONS: readonly Section[] = [
  { name: 'name', order: 30, show: nameRow }, { name: 'delete', order: 90, show: deleteRow }
]

function nameRow ({ auth, texts: { common, account }, user: { name }, typed, rowOf, targets }: AccountView): Html {
  const fields = nameField(common.name, textIn(typed.name) ?? name)
  const content = htmlForm({
    action: auth.formPaths.get('pages/name'), hidden: targets(), fields, submit: account.nameSubmit
  })
  return rowOf({ title: common.name, state: verbatim(name) ?? account.notSet, content })
}

function deleteRow (view: AccountView): Content {
  const { auth, texts: { account }, user, left, rowOf, targets } = view
  const current = currentPasswordField(view)
  const content = htmlForm({
    action: auth.formPaths.get('local/delete-account'),
    hidden: { ...targets(), next: left.next, done: 'deleted' },
    fields: current && [usernameField(null, user.email), current],
    submit: account.deleteSubmit,
    look: 'danger'
  })
  return content && rowOf({
    title: account.deleteSubmit, state: account.deleteText, change: account.delete, isDanger: true, content
  })
}
