import {
  type Content, action, checkboxField, dateIn, field, filled, html, htmlForm, item, verbatim
} from '../../core/pages/elements.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { wordsIn } from '../../core/scopes.js'
import { textIn } from '../pages/parts.js'
import { type ApiKey, listKeys, userScopes } from './made-keys.js'

export const keysSection: Section = { name: 'keys', order: 77, show: keysRow }

async function keysRow (view: AccountView): Promise<Content> {
  const { auth: { parts: { apiKeys: part } }, user: { userId }, texts: { keys }, rowOf } = view
  const own = part === null ? [] : await listKeys(part, { userId })
  if (part === null || (own.length === 0 && !part.selfService)) return null
  return rowOf({
    title: keys.title,
    state: own.length === 0 ? keys.none : String(own.length),
    content: [own.length > 0 && html`<ul>${own.map(key => keyItem(view, part, key))}</ul>`, newKeyForm(view, part)]
  })
}

type Part = Pick<NonNullable<AccountView['auth']['parts']['apiKeys']>, 'scopes' | 'maxAge'>

function keyItem (
  { auth: { formPaths }, texts: { keys, language }, targets }: AccountView, { scopes: known }: Part,
  { id, name, scopes, createdAt, lastUsedAt, expiresAt }: ApiKey
): Content {
  const date = dateIn(language, createdAt)
  const used = lastUsedAt === null
    ? filled(keys.unused, { date })
    : filled(keys.since, { date, used: dateIn(language, lastUsedAt) })
  const words = scopes.map(scope => wordsIn(known.get(scope) ?? scope, language)).join(' · ')
  return item(
    html`${verbatim(name)} <small>${words}</small><small>${used}</small>${
      expiresAt && html`<small>${filled(keys.expires, { date: dateIn(language, expiresAt) })}</small>`}`,
    action(formPaths.get('local/keys/end'), { ...targets({ open: true }), id }, keys.end, {
      label: filled(keys.endLabel, { name }), look: 'small'
    })
  )
}

function newKeyForm (
  { auth: { formPaths }, texts: { keys, language }, typed, targets }: AccountView, { scopes, maxAge }: Part
): Content {
  return htmlForm({
    action: formPaths.get('local/keys'),
    hidden: targets({ open: true }),
    fields: [
      field({
        name: 'name',
        label: keys.name,
        type: 'text',
        autocomplete: 'off',
        value: textIn(typed.name),
        attributes: html` maxlength="64"`
      }),
      userScopes({ scopes }).map(scope =>
        checkboxField('scopes', wordsIn(scopes.get(scope) ?? scope, language), false, scope)),
      field({
        name: 'expiresInDays',
        label: keys.days,
        type: 'text',
        autocomplete: 'off',
        hint: maxAge === null ? keys.daysHint : '',
        isOptional: true,
        attributes: html` inputmode="numeric" pattern="[1-9][0-9]{0,4}"`
      })
    ],
    submit: keys.create
  })
}
