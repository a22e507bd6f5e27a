import { type Content, Html, html } from './html.js'
import { type Texts, filled, verbatim } from './texts.js'

/** `primary`: at most one on a page is shown; `danger`: it deletes something. */
type ButtonLook = 'primary' | 'quiet' | 'danger'

/** A form of a page. It works without scripts. */
export interface PageForm {
  /** The path that the form is sent to: without a token, because paths are logged. */
  action: string
  /** Fields that are sent and not shown, such as a token; those that are null are left out. */
  hidden: Readonly<Record<string, string | null>>
  fields: Content
  submit: string
  /** What the button does, for screen readers, where the words alone do not say it. */
  label?: string
  /** How the button looks; default as the one that a page is for. */
  look?: ButtonLook
  /** The path of a picture before the words of the button. */
  icon?: string | undefined
  attributes?: Html
  /** The value that the button gives a field, and a second button that gives it another one. */
  choice?: { name: string, value: string, other: string, otherSubmit: string } | undefined
  /** A second button after a word: where it sends the form, without checking the fields. */
  other?: { readonly action: string, readonly submit: string, readonly or: string } | false
}

export interface PageField {
  name: string
  label: string
  type: 'text' | 'email' | 'password'
  /** What the browser may fill in, as in the attribute `autocomplete` of HTML. */
  autocomplete: 'name' | 'email' | Username | 'new-password' | 'current-password' | 'one-time-code' | 'off'
  value?: string | null
  /** A sentence below the label. */
  hint?: string
  /** Whether the form may be sent without it; default false. */
  isOptional?: boolean
  attributes?: Html
}

/** With `webauthn`, the browser offers passkeys as well. */
type Username = 'username' | 'username webauthn'

/** Stands in each form for the field `shown_to`: the page that is sent knows its user. */
export const SHOWN_TO = new Html('<!--shown_to-->')

export function form (
  { action, hidden, fields, submit, label, look, icon, attributes, choice, other }: PageForm
): Html {
  return html`<form method="post" action="${action}"${attributes}>${SHOWN_TO}
${Object.entries(hidden).map(([name, value]) =>
  value !== null && html`<input type="hidden" name="${name}" value="${value}">`)}
${fields}
<button type="submit"${label && html` aria-label="${label}"`}${look && html` class="${look}"`}${
  choice && html` name="${choice.name}" value="${choice.value}"`}>${picture(icon)}${submit}</button>
${choice && html`<button class="danger" name="${choice.name}" value="${choice.other}">${choice.otherSubmit}</button>
`}${other && html`${separator(other.or)}
<button class="quiet" formaction="${other.action}" formnovalidate>${other.submit}</button>
`}</form>
`
}

/** Makes a form of one button; `label` is what it does, where the words alone do not say it. */
export function action (
  path: string, hidden: PageForm['hidden'], submit: string, more: Pick<PageForm, 'label' | 'look' | 'icon'> = {}
): Html {
  return form({ action: path, hidden, fields: [], submit, ...more })
}

/** As `type="email"` browsers refuse addresses that the server takes: `jörg@example.com`. */
const TYPES: Readonly<Record<PageField['type'], Html>> = {
  text: html` type="text"`,
  email: html` type="text" inputmode="email" autocapitalize="off" spellcheck="false"`,
  password: html` type="password"`
}

export function field (
  { name, label, type, autocomplete, value, hint, isOptional = false, attributes }: PageField
): Html {
  return html`<label>${label}${hint && html` <small>${hint}</small>`}
<input${TYPES[type]} name="${name}" autocomplete="${autocomplete}"${value != null && html` value="${value}"`}${
  !isOptional && html` required`}${attributes}></label>`
}

/** Makes a field in which the user may choose a value; `none` is the text of no value. */
export function choice (
  name: string, label: string, none: string, choices: readonly string[], chosen: string | null
): Html {
  return html`<label>${label}
<select name="${name}">
<option value="">${none}</option>
${choices.map(choice => html`<option${choice === chosen && html` selected`}>${choice}</option>`)}
</select></label>`
}

export function checkbox (name: string, label: string, isChecked: boolean): Html {
  return html`<label class="check"><input type="checkbox" name="${name}"${isChecked && html` checked`}>${label}</label>`
}

/**
 * Shows the e-mail by which the user signs in, beside a password, with a field that is neither
 * shown nor sent: password managers keep the password under it.
 *
 * @param label null where the page shows the e-mail already
 */
export function usernameField (label: string | null, email: string | null): Content {
  return email !== null && html`${label && html`<p><b>${label}</b><br>${verbatim(email)}</p>`}
<input type="text" value="${email}" autocomplete="username" hidden>`
}

export function emailField (label: string, value: string | null, autocomplete: Username = 'username'): Html {
  return field({ name: 'email', label, type: 'email', autocomplete, value })
}

/** Makes the field of a code of digits, or of letters too: from left to right in each script. */
export function codeField (name: string, label: string, keyboard: 'numeric' | 'text', hint = ''): Html {
  const attributes = html` inputmode="${keyboard}" dir="ltr" autocapitalize="off" spellcheck="false"`
  return field({ name, label, type: 'text', autocomplete: 'one-time-code', hint, attributes })
}

export function nameField (label: string, value: string | null): Html {
  return field({ name: 'name', label, type: 'text', autocomplete: 'name', value, isOptional: true })
}

/** @param name `current`: beside a new one, or beside what needs it */
export function passwordField (label: string, name: 'password' | 'current' = 'password'): Html {
  return field({ name, label, type: 'password', autocomplete: 'current-password' })
}

export function newPasswordField ({ passwordRule }: Texts['common'], label: string, minLength: number): Html {
  const hint = filled(passwordRule, { count: String(minLength) })
  return field({ name: 'password', label, type: 'password', autocomplete: 'new-password', hint })
}

/** Makes a link that looks like a button; `icon` is the path of a picture. */
export function button (href: string, label: string, look: ButtonLook = 'quiet', icon?: string): Html {
  return html`<a class="button ${look}" href="${href}">${picture(icon)}${label}</a>`
}

const picture = (path: string | undefined): Content => path && html`<img src="${path}" alt="">`

/** A link to another page; false or null for one that there is not. */
export type WayOn = readonly [href: string | false | null, label: string]

export function links (...others: readonly WayOn[]): Html {
  return html`<ul>${others.map(([href, label]) => href && html`<li><a href="${href}">${label}</a></li>`)}</ul>`
}

const separator = (or: string): Html => html`<p class="or">${or}</p>`

/** Separates the ways to go on of a page by the word `or`; those that are empty are left out. */
export function ways (or: string, ...contents: readonly Content[]): Content {
  const others = contents.map(content => html`${content}`).filter(({ source }) => source !== '')
  return others.map((way, index) => [index > 0 && separator(or), way])
}

export function section (title: string, content: Content): Html {
  return html`<section><h2>${title}</h2>${content}</section>`
}

/** A row of settings. With a content it opens in place; with `href` it leads to a page. */
export interface SettingsRow {
  title: string
  /** What the user has now. */
  state: Content
  /** The word that opens the row. */
  change: string
  content?: Content
  href?: string
  isOpen?: boolean
  isDanger?: boolean
  /** What is shown below, open or not. */
  more?: Content
}

export function row ({ title, state, change, content, href, isOpen, isDanger, more }: SettingsRow): Html {
  const shown = html`<h2>${title}</h2> <span>${state}</span>`
  const head = html`${shown} <span class="change${isDanger && ' danger'}">${change}</span>`
  const link = href !== undefined && html`<a class="head" href="${href}">${head}</a>`
  return html`<section class="row">${content
    ? html`<details${isOpen && html` open`}><summary class="head">${head}</summary>\n<div>${content}</div></details>`
    : link || html`<div class="head">${shown}</div>`}${more}</section>\n`
}
