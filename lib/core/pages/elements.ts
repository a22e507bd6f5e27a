import { brand } from '../../base/values.js'
import { shownEmail } from '../../email.js'
import type { english } from './languages/en.js'

/** HTML that {@link html} made: everything in it is escaped. */
export class Html {
  static { brand(this, 'Html') }
  readonly source: string

  constructor (source: string) {
    this.source = source
  }
}

/** What HTML may hold: a text, which is escaped, other HTML, or a list of these. */
export type Content = string | Html | readonly Content[] | false | null | undefined

/** Makes HTML of a template. Absent values are empty. */
export function html (template: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(String.raw({ raw: template }, ...values.map(sourceOf)))
}

function sourceOf (value: Content): string {
  if (value === null || value === undefined || value === false) return ''
  if (typeof value === 'string') return value.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
  return value instanceof Html ? value.source : value.map(sourceOf).join('')
}

/** The same texts in another language. */
type SameTexts<Part> = { readonly [Name in keyof Part]: Part[Name] extends string ? string : SameTexts<Part[Name]> }

/**
 * What the pages say in one language, as `en` says it: a language without one of its texts does not
 * compile. Names in braces are replaced and must stay.
 */
export type Texts = SameTexts<Omit<typeof english, 'direction'>> & {
  /** The direction of the script. */
  readonly direction: 'ltr' | 'rtl'
}

/** Puts values in place of the names in braces. */
export function filled (text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)
}

/**
 * Puts names, addresses and the like in place of the names in braces. No program translates them,
 * and their direction is their own.
 */
export function sentence (text: string, values: Readonly<Record<string, string>>): Html {
  const parts = text.split(/\{(\w+)\}/)
  return html`${parts.map((part, index) => index % 2 === 0 ? part : verbatim(values[part] ?? `{${part}}`))}`
}

/** A name, an address or a code: what no program translates. */
export function verbatim (value: string | null): Content {
  return value && html`<bdi translate="no">${shownEmail(value)}</bdi>`
}

/** A length of time in words, such as `30 days`. */
export function timeIn (language: string, count: number, unit: 'second' | 'minute' | 'day'): string {
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
}

/** A day, in UTC, and says so: the server does not know the time zone of the browser. */
export function dateIn (language: string, date: Date): string {
  return `${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(date)} (UTC)`
}

/**
 * `primary`: at most one on a page is shown; `quiet`: beside what the page is for; `danger`: it
 * deletes something. In a list, buttons are `small`.
 */
type ButtonLook = 'primary' | 'plain' | 'quiet' | 'danger' | 'small' | 'small danger'

/** A form of a page. It works without scripts. */
export interface PageForm {
  /**
   * From `formPaths` of the context, without a token, because paths are logged. Undefined for an
   * act that is not mounted: then there is no form.
   */
  action: string | undefined
  /** Fields that are sent and not shown, such as a token; those that are null are left out. */
  hidden: Readonly<Record<string, string | null>>
  fields: Content
  submit: string
  /** What the button does, for screen readers, where the words alone do not say it. */
  label?: string
  /** How the button looks; default `primary`. */
  look?: ButtonLook | undefined
  /** The path of a picture before the words of the button. */
  icon?: string | undefined
  attributes?: Html
  /** The value that the button gives a field, and a second button that gives it another one. */
  choice?: { name: string, value: string, other: string, otherSubmit: string } | undefined
  /** A second button after a word: where it sends the form, without checking the fields. */
  other?: { readonly action: string | undefined, readonly submit: string, readonly or: string } | false
}

export interface PageField {
  name: string
  label: string
  type: 'text' | 'email' | 'password'
  /** What the browser may fill in, as in the attribute `autocomplete` of HTML. */
  autocomplete: 'name' | 'email' | Username | 'new-password' | 'current-password' | 'one-time-code' | 'off'
  value?: string | null
  /** A sentence below the field. */
  hint?: string | undefined
  /** A link at the end of the line of the label. */
  beside?: Content
  /** Whether the form may be sent without it; default false. */
  isOptional?: boolean
  attributes?: Html
}

/** With `webauthn`, the browser offers passkeys as well. */
type Username = 'username' | 'username webauthn'

/** Stands in each form for the field `shown_to`: the page that is sent knows its user. */
export const SHOWN_TO = new Html('<!--shown_to-->')

/** Stands below each field for what is wrong with it. */
export const errorBelow = (name: string): Html => html`<!--error ${name}-->`

export function htmlForm (
  { action, hidden, fields, submit, label, look = 'primary', icon, attributes, choice, other }: PageForm
): Content {
  return action && html`<form method="post" action="${action}"${attributes}>${SHOWN_TO}
${Object.entries(hidden).map(([name, value]) =>
  value !== null && html`<input type="hidden" name="${name}" value="${value}">`)}
${fields}
<button type="submit" class="button ${look}" data-part="submit"${label && html` aria-label="${label}"`}${
  choice && html` name="${choice.name}" value="${choice.value}"`}>${picture(icon)}${submit}</button>
${choice && html`<button class="button danger" data-part="submit" name="${choice.name}" value="${choice.other}">${
  choice.otherSubmit}</button>
`}${other && other.action && html`${separator(other.or)}
<button class="button plain" data-part="submit" formaction="${other.action}" formnovalidate>${other.submit}</button>
`}</form>
`
}

/** Makes a form of one button; `label` is what it does, where the words alone do not say it. */
export function action (
  path: PageForm['action'], hidden: PageForm['hidden'], submit: string,
  more: Pick<PageForm, 'label' | 'look' | 'icon'> = {}
): Content {
  return htmlForm({ action: path, hidden, fields: [], submit, ...more })
}

/** As `type="email"` browsers refuse addresses that the server takes: `jörg@example.com`. */
const TYPES: Readonly<Record<PageField['type'], Html>> = {
  text: html` type="text"`,
  email: html` type="text" inputmode="email" dir="ltr" autocapitalize="off" spellcheck="false"`,
  password: html` type="password"`
}

export function field (
  { name, label, type, autocomplete, value, hint, beside, isOptional = false, attributes }: PageField
): Html {
  return labelled({ name, label, hint, beside }, html`<input class="input" data-part="input"${
    TYPES[type]} name="${name}" autocomplete="${autocomplete}"${value != null && html` value="${value}"`}${
    !isOptional && html` required`}${attributes}>`)
}

export function labelled (
  { name, label, hint, beside }: Pick<PageField, 'name' | 'label' | 'hint' | 'beside'>, input: Html
): Html {
  return html`<div class="field" data-part="field"><label><span class="label" data-part="label">${label}</span>
${input}${hint && html`<small class="hint" data-part="hint">${hint}</small>`}</label>${errorBelow(name)}${beside}</div>`
}

export function checkboxField (name: string, label: string, isChecked: boolean, value = 'on'): Html {
  return html`<label class="check" data-part="field"><input class="box" data-part="input" type="checkbox" name="${
    name}"${value !== 'on' && html` value="${value}"`}${isChecked && html` checked`}>${label}</label>`
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

export function nameField (label: string, value: string | null, attributes?: Html): Html {
  return field({
    name: 'name', label, type: 'text', autocomplete: 'name', value, isOptional: true, ...(attributes && { attributes })
  })
}

/** @param name `current`: beside a new one, or beside what needs it */
export function passwordField (
  label: string, name: 'password' | 'current' = 'password', beside: Content = null
): Html {
  return field({ name, label, type: 'password', autocomplete: 'current-password', beside })
}

export function newPasswordField ({ passwordRule }: Texts['common'], label: string, minLength: number): Html {
  const hint = filled(passwordRule, { count: String(minLength) })
  return field({ name: 'password', label, type: 'password', autocomplete: 'new-password', hint })
}

/** Makes a link that looks like a button; `icon` is the path of a picture. */
export function button (href: string, label: string, look: ButtonLook = 'plain', icon?: string): Html {
  return html`<a class="button ${look}" data-part="link" href="${href}">${picture(icon)}${label}</a>`
}

const picture = (path: string | undefined): Content => path && html`<img src="${path}" alt="">`

export function link (href: string, label: string): Html {
  return html`<a class="link" data-part="link" href="${href}">${label}</a>`
}

/** Makes a line of a list, with what can be done. */
export function item (what: Content, ...acts: readonly Content[]): Html {
  return html`<li class="item" data-part="row"><span class="what">${what}</span>${acts}</li>`
}

/** A link to another page; false or null for one that there is not. */
export type WayOn = readonly [href: string | false | null, label: string]

export function links (...others: readonly WayOn[]): Html {
  const items = others.map(([href, label]) => href && html`<li>${link(href, label)}</li>`)
  return html`<ul class="links">${items}</ul>`
}

export function alert (content: Content, attributes?: Html): Html {
  return html`<p class="error" data-part="error" role="alert"${attributes}>${content}</p>`
}

export function notice (content: Content): Html {
  return html`<p class="notice" data-part="notice" role="status">${content}</p>`
}

const separator = (or: string): Html => html`<p class="or" data-part="divider">${or}</p>`

/** Separates the ways to go on of a page by the word `or`; those that are empty are left out. */
export function ways (or: string, ...contents: readonly Content[]): Content {
  const others = contents.map(content => html`${content}`).filter(({ source }) => source !== '')
  return others.map((way, index) => [index > 0 && separator(or), way])
}

export function section (title: string, content: Content): Html {
  return html`<section class="section"><h2>${title}</h2>${content}</section>`
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
  const shown = html`<h2>${title}</h2> <span class="state">${state}</span>`
  const head = html`${shown} <span class="change${isDanger && ' danger'}">${change}</span>`
  const whole = href !== undefined && html`<a class="head" href="${href}">${head}</a>`
  return html`<section class="row" data-part="row">${content
    ? html`<details${isOpen && html` open`}><summary class="head">${head}</summary>
<div class="inside">${content}</div></details>`
    : whole || html`<div class="head">${shown}</div>`}${more && html`<div class="inside">${more}</div>`}</section>
`
}
