import type { FastifyReply } from 'fastify'

/** A page of the plugin: text and forms. It works without scripts. */
export interface FormPage {
  title: string
  /** Paragraphs above the forms. */
  text: readonly string[]
  forms: readonly PageForm[]
}

/** A form of a {@link FormPage}. */
export interface PageForm {
  /** The heading of the form, on a page with several. */
  heading?: string
  /** The path that the form is sent to: without a token, because paths are logged. */
  action: string
  /** Fields that are sent and not shown, such as the token. */
  hidden: Readonly<Record<string, string>>
  /**
   * The e-mail by which the user signs in. It is shown and not sent: password managers save the
   * password under it.
   */
  username?: string
  fields: ReadonlyArray<PageField | PageChoice | PageCheckbox>
  /** The words of the button. */
  submit: string
}

/** A field that the user fills in. */
export interface PageField {
  name: string
  label: string
  type: 'text' | 'email' | 'password'
  /** What the browser may fill in, as in the `autocomplete` attribute of HTML. */
  autocomplete: 'name' | 'email' | 'new-password' | 'current-password'
  /** Whether the form may be sent without it; default false. */
  isOptional?: true
}

/** The field for the password of an account. */
export const PASSWORD_FIELD: PageField = {
  name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password'
}

/** A field in which the user may choose a value. */
export interface PageChoice {
  name: string
  label: string
  choices: readonly string[]
}

/** A checkbox. */
export interface PageCheckbox {
  name: string
  label: string
  type: 'checkbox'
}

/** The page holds a token: it loads nothing, runs nothing, and is neither framed nor indexed. */
const HEADERS = {
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  'X-Robots-Tag': 'noindex',
  'Cache-Control': 'no-store'
}

/**
 * Sends a page.
 *
 * @param failure the sentence of an error, above the forms
 */
export function sendPage (reply: FastifyReply, page: FormPage, failure?: string): FastifyReply {
  return reply.headers(HEADERS).type('text/html; charset=utf-8').send(document(page, failure).source)
}

/** HTML that {@link html} made: everything in it is escaped. */
class Html {
  readonly source: string

  constructor (source: string) {
    this.source = source
  }
}

type Value = string | Html | readonly Html[] | undefined

/** Makes HTML of a template. Texts in it are escaped; absent values are empty. */
function html (template: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(String.raw({ raw: template }, ...values.map(sourceOf)))
}

function sourceOf (value: Value = []): string {
  if (typeof value === 'string') return value.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
  return value instanceof Html ? value.source : value.map(({ source }) => source).join('')
}

function document ({ title, text, forms }: FormPage, failure: string | undefined): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>
body { max-width: 24rem; margin: 10vh auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }
h1, p { overflow-wrap: anywhere }
h1 { font-size: 1.5rem }
h2 { font-size: 1.125rem; margin-top: 2.5rem }
label { display: block; margin-top: 1rem }
input, select, button { box-sizing: border-box; width: 100%; padding: .625rem; font: inherit }
button { margin-top: 1.25rem; cursor: pointer }
[type=checkbox] { width: auto; margin: 0 .5rem 0 0 }
[role=alert] { padding: .5rem 1rem; border: 2px solid }
</style>
</head>
<body>
<main>
<h1>${title}</h1>
${failure === undefined ? undefined : html`<p role="alert">${failure}</p>`}
${text.map(paragraph => html`<p>${paragraph}</p>`)}
${forms.map(formOf)}
</main>
</body>
</html>
`
}

function formOf ({ heading, action, hidden, username, fields, submit }: PageForm): Html {
  return html`${heading === undefined ? undefined : html`<h2>${heading}</h2>`}
<form method="post" action="${action}">
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${username === undefined ? undefined : usernameOf(username)}
${fields.map(fieldOf)}
<button type="submit">${submit}</button>
</form>
`
}

function usernameOf (email: string): Html {
  return html`<label>E-mail
<input type="email" value="${email}" autocomplete="username" readonly></label>`
}

function fieldOf (field: PageField | PageChoice | PageCheckbox): Html {
  if ('choices' in field) return choiceOf(field)
  return field.type === 'checkbox' ? checkboxOf(field) : inputOf(field)
}

function checkboxOf ({ name, label }: PageCheckbox): Html {
  return html`<label><input type="checkbox" name="${name}">${label}</label>`
}

function choiceOf ({ name, label, choices }: PageChoice): Html {
  return html`<label>${label}
<select name="${name}">
<option value="">None</option>
${choices.map(choice => html`<option>${choice}</option>`)}
</select></label>`
}

function inputOf ({ name, label, type, autocomplete, isOptional }: PageField): Html {
  return html`<label>${label}
<input type="${type}" name="${name}" autocomplete="${autocomplete}"${isOptional ? undefined : html` required`}></label>`
}
