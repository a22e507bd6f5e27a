import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOfLanguage, preferredTexts } from '../languages.js'
import { type Site, mergedVary, shownTo } from '../site.js'
import { type Content, Html, SHOWN_TO, type Texts, html } from './elements.js'
import { impersonationBarOf } from './impersonation-bar.js'
import { english } from './languages/en.js'
import type { AuthError } from '../../errors.js'
import { principalOf } from '../../session/record.js'

/** A link at the end of each page. */
export interface PageLink {
  /** The words of the link. */
  label: string
  /** A path of the application, or an https: URL. */
  href: string
}

/** How pages look, and the languages that they speak. */
export interface LookOptions {
  readonly name: string | null
  readonly logo: string | null
  readonly stylesheet: string | null
  readonly languages: readonly [Texts, ...Texts[]]
  readonly links: readonly PageLink[]
  readonly support: string | null
}

/** A request for a page, or for a form whose failure the page shows. */
export interface View {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly texts: Texts
  /** The page after a success, as it was asked for; null for none. */
  readonly next: string | null
  /** Whether only a second factor suffices, where the user authenticates again. */
  readonly needsFactor: boolean
  /** Whether the user says that they have lost what they authenticate by. */
  readonly isLost: boolean
  /** The name of what is shown open, such as a row with a form that failed; null for nothing. */
  readonly opened: string | null
  /** What the fields of the form had that failed, so that the user need not type them again. */
  readonly typed: Readonly<Record<string, unknown>>
  /** Why the form failed; null for a page that was asked for. */
  readonly failure: AuthError | null
}

export interface Page {
  readonly title: string
  readonly content: Content
  /** Whether it has pictures besides the logo. */
  readonly hasIcons?: boolean
  /** The path of its script; absent or null for none. */
  readonly script?: string | null
  /** Whether it has more room, for rows. */
  readonly isWide?: boolean
  /** Whether its forms lead to other sites: browsers apply `form-action` to redirects, too. */
  readonly leadsElsewhere?: boolean
  /** The URL that the browser opens at once, with and without scripts. */
  readonly refresh?: string
}

/** Sentences about a request before: of its error, or of its success. */
export interface PageMessages {
  readonly failure?: string | null
  readonly notice?: string | null
  /** How the user goes on after the failure. */
  readonly way?: Content
  /** The names of the fields that the failure may be about: the first one that the form has. */
  readonly fields?: readonly string[]
  /** Whether the script of passkeys asks once more, as the challenge is another one by now. */
  readonly isAskedAgain?: boolean
}

/** The look of pages without the option `pages`. */
const PLAIN: LookOptions = { name: null, logo: null, stylesheet: null, languages: [english], links: [], support: null }

/** Makes documents of pages: one layout, whose parts the application chooses. */
export class PageLayout {
  readonly #options: LookOptions
  readonly #policy: string
  /** Where the name of the application leads. */
  readonly #home: string
  readonly #endPath: string | null

  /** @param site the application; null before it is known */
  constructor (options: LookOptions = PLAIN, site: Site | null = null, prefix = '') {
    this.#options = options
    this.#endPath = site && site.routePath(`${prefix}/local/impersonation/end`)
    this.#home = site?.publicPath('/') ?? '/'
    const { logo, stylesheet } = options
    const style = `'sha256-${hash('sha256', STYLE, 'base64')}'`
    // A page may hold a token: it runs nothing, loads nothing from elsewhere, and is not framed.
    this.#policy = `default-src 'none'; style-src ${style}${stylesheet === null ? '' : " 'self'"}; ` +
      `${logo === null ? '' : "img-src 'self'; "}form-action ${["'self'", ...site?.trustedOrigins ?? []].join(' ')}; ` +
      "frame-ancestors 'none'; base-uri 'none'"
  }

  /** Returns the same look for the pages of a site, whose forms may lead to its trusted origins. */
  of (site: Site, prefix: string): PageLayout {
    return new PageLayout(this.#options, site, prefix)
  }

  /** The URL at which the reader of a failure asks for help; null for none. */
  get support (): string | null {
    return this.#options.support
  }

  /** Returns the texts in the language that a request prefers, if any; its region writes dates. */
  textsFor (request: FastifyRequest): Texts {
    return preferredTexts(this.#options.languages, request.headers['accept-language'])
  }

  /** Returns the tag of that language without the region, as the option `languages` has it. */
  languageFor (request: FastifyRequest): string {
    const { language: tag } = this.textsFor(request)
    return this.#options.languages.find(({ language }) => isOfLanguage(tag, language))?.language ?? tag
  }

  send (reply: FastifyReply, page: Page, messages: PageMessages = {}): FastifyReply {
    const principal = principalOf(reply.request)
    const { source } = this.#document(page, this.textsFor(reply.request), messages, principal)
    const { userId } = principal ?? {}
    const shown = userId && html`<input type="hidden" name="shown_to" value="${shownTo(userId)}">`
    // The script of passkeys asks this origin for options.
    const ofScript = page.script == null ? '' : "; script-src 'self'; connect-src 'self'"
    // The application may have named other headers.
    const Vary = mergedVary(reply.getHeader('Vary'), 'Accept-Language, Cookie')
    const ofIcons = page.hasIcons === true && this.#options.logo === null ? "; img-src 'self'" : ''
    const own = page.leadsElsewhere === true ? this.#policy.replace(/form-action [^;]*; /, '') : this.#policy
    const policy = own + ofScript + ofIcons
    reply.headers({ Vary, 'X-Robots-Tag': 'noindex', 'Content-Security-Policy': policy })
    const marked = withInvalidField(source, messages.fields ?? [])
    return reply.type('text/html; charset=utf-8').send(marked.replaceAll(SHOWN_TO.source, html`${shown}`.source))
  }

  #document (
    { title, content, script, isWide, refresh }: Page, texts: Texts,
    { failure, notice, way, isAskedAgain }: PageMessages, principal: FastifyRequest['principal']
  ): Html {
    const { language, direction } = texts
    const action = this.#endPath
    const bar = principal?.impersonator !== undefined && action !== null &&
      impersonationBarOf(texts, { principal, action, next: null })
    const { name, logo, stylesheet, links } = this.#options
    return html`<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${refresh && html`<meta http-equiv="refresh" content="0; url=${refresh}">`}
${logo && html`<link rel="icon" href="${logo}">`}
<title>${failure && html`${failure} · `}${title}${name && html` · ${name}`}</title>
<style>${new Html(STYLE)}</style>
${stylesheet && html`<link rel="stylesheet" href="${stylesheet}">`}
${script && html`<script type="module" src="${script}"></script>`}
</head>
<body${isWide && html` class="wide"`}>
${bar}${name && html`<header><a href="${this.#home}">${logo && html`<img src="${logo}" alt="">`}${name}</a></header>`}
<main>
<h1>${title}</h1>
${failure && html`<p role="alert" id="failure"${isAskedAgain && html` data-passkey-again`}>${failure}</p>`}
${way}
${notice && html`<p role="status">${notice}</p>`}
${content}
</main>
${links.length > 0 && html`<footer>${links.map(({ label, href }) => html`<a href="${href}">${label}</a> `)}</footer>`}
</body>
</html>
`
  }
}

/** Ties the alert to its field, in the row that is open, and puts the focus there. */
function withInvalidField (source: string, fields: readonly string[]): string {
  const start = Math.max(0, source.indexOf('<details open'))
  const form = source.slice(start, start === 0 ? undefined : source.indexOf('</details>', start))
  const field = fields.map(name => ` name="${name}" autocomplete`).find(field => form.includes(field))
  const marks = ' aria-invalid="true" aria-describedby="failure" autofocus'
  return field === undefined ? source : source.slice(0, start) + source.slice(start).replace(field, marks + field)
}

/**
 * The style of all pages. An application changes the custom properties in its own stylesheet:
 * `:root { --auth-color: #7c3aed }`. Sides are logical, for scripts from right to left.
 */
const STYLE = `
:root {
  color-scheme: light dark;
  --auth-font: system-ui, sans-serif;
  --auth-width: 26rem;
  --auth-radius: .5rem;
  --auth-color: #1d4ed8;
  --auth-on-color: #fff;
  --auth-text: #1f2937;
  --auth-faint: #5b6472;
  --auth-line: #8a93a1;
  --auth-rule: color-mix(in srgb, var(--auth-line) 45%, transparent);
  --auth-back: #fff;
  --auth-danger: #b91c1c;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --auth-color: #93b4fd;
    --auth-on-color: #0b1220;
    --auth-text: #e5e7eb;
    --auth-faint: #a3adbb;
    --auth-line: #6b7685;
    --auth-back: #111827;
    --auth-danger: #fca5a5;
  }
}
* { box-sizing: border-box }
body {
  max-width: var(--auth-width); margin: 6vh auto; padding: 0 1rem;
  font: 1rem/1.5 var(--auth-font); color: var(--auth-text); background: var(--auth-back);
  overflow-wrap: anywhere;
}
.wide { max-width: calc(1.5 * var(--auth-width)) }
.wide :is(input, button, .button) { max-inline-size: var(--auth-width) }
header a, footer { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; color: var(--auth-faint) }
header a { font-weight: 600; text-decoration: none }
header img { block-size: 2rem }
.svc-auth-impersonation {
  display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between;
  margin-block-end: 1.5rem; padding: .5rem 1rem; border: 2px solid var(--auth-danger);
  border-radius: var(--auth-radius);
}
.svc-auth-impersonation > * { margin: 0; inline-size: auto }
footer { margin-block-start: 3rem; font-size: .875rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
h2 { font-size: 1.125rem; margin-block: 0 .5rem }
section { margin-block-start: 1.5rem; padding-block-start: 1.25rem; border-block-start: 1px solid var(--auth-rule) }
ul { list-style: none; margin: 0; padding: 0 }
li, .item { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; justify-content: space-between }
.item { margin-block-end: 1.25rem }
li > span, .item > span { flex: 1 1 10rem }
ul:has(details) > li { justify-content: end }
li small { display: block }
form ~ ul { margin-block-start: 1.25rem }
li + li { margin-block-start: .75rem }
li > form, .item > form, :is(li, .item) > form button, li summary { margin: 0; inline-size: auto }
.row { padding: 0 }
.row, .row + section { margin: 0 }
section:not(.row) + .row { margin-block-start: 1.5rem }
.row h2 { font-size: 1rem; margin: 0 }
.head {
  display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 1rem; padding-block: 1rem;
  color: inherit; text-decoration: none;
}
.head > span { grid-column: 1 }
.head > .change { grid-area: 1 / -2 / span 2; align-self: center; color: var(--auth-color) }
.head:hover .change { text-decoration: underline }
.row details > div, .row > form { padding-block-end: 1.5rem }
.row form:first-child > :is(label:first-of-type, input + button), .row > form button { margin-block-start: 0 }
@media (max-width: 36rem) { ul:has(details) > li > span { flex-basis: 100% } }
@media (min-width: 36rem) {
  .head { grid-template-columns: 10rem minmax(0, 1fr) auto }
  .head > span { grid-column: 2 }
  .head > .change { grid-area: 1 / -2; align-self: start }
  .row details > div, .row > form { margin-inline-start: 11rem }
}
a { color: var(--auth-color) }
small, .faint { color: var(--auth-faint); font-size: .875rem; font-weight: 400 }
label { display: block; margin-block-start: 1rem; font-weight: 600 }
label.check { font-weight: 400 }
input, select, button, .button {
  inline-size: 100%; padding: .625rem .75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--auth-line); border-radius: var(--auth-radius);
}
label input, label select { margin-block-start: .25rem; font-weight: 400 }
select option { color: var(--auth-text); background: var(--auth-back) }
[type=checkbox] { inline-size: auto; margin: 0; margin-inline-end: .5rem; accent-color: var(--auth-color) }
button, .button {
  display: block; margin-block-start: 1.25rem; text-align: center; text-decoration: none; cursor: pointer;
  color: var(--auth-on-color); background: var(--auth-color); border-color: var(--auth-color); font-weight: 600;
}
.quiet, :where(li, .item) > form button, li summary, form ~ form button, .danger {
  color: var(--auth-color); background: transparent;
}
button.danger, .head .danger { color: var(--auth-danger); border-color: var(--auth-danger) }
.quiet { margin-block-start: .75rem }
:is(button, .button) img { block-size: 1.25em; margin-inline-end: .5rem; vertical-align: -.25em }
li > form button, .item button, li summary { padding: .25rem .75rem; border-color: var(--auth-line) }
.qr {
  inline-size: 14rem; max-inline-size: 100%; margin: 1.25rem auto; padding: 1rem;
  background: #fff; forced-color-adjust: none;
}
.qr svg { display: block }
code { font: 1rem ui-monospace, monospace }
.codes { user-select: all }
.codes li + li { margin: 0 }
.remembered, body:has([name=remember]:checked) .once { display: none }
body:has([name=remember]:checked) .remembered { display: block }
.check:has([name=saved]:not(:checked)) + .button { display: none }
summary { cursor: pointer; list-style: none }
li summary { border: 1px solid; border-radius: var(--auth-radius); font-weight: 600 }
li details { display: contents }
li details::details-content { order: 1; flex-basis: 100% }
li details:not([open])::details-content { display: none }
.or { display: flex; gap: 1rem; align-items: center; margin-block: 1.25rem; color: var(--auth-faint) }
.or::before, .or::after { content: ''; flex: 1; border-block-start: 1px solid var(--auth-rule) }
.or + :is(button, .button), .or + form:not(:has(label)) > button { margin-block-start: 0 }
:focus-visible { outline: 3px solid var(--auth-color); outline-offset: 2px }
[role=alert], [role=status] { padding: .5rem 1rem; border: 2px solid; border-radius: var(--auth-radius) }
[aria-invalid] { border-color: var(--auth-danger) }
[role=alert] { color: var(--auth-danger) }
`
