import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOfLanguage, preferredTexts } from '../languages.js'
import { ANY_ORIGIN } from '../redirects.js'
import { type Site, isRead, mergedVary, shownTo } from '../site.js'
import { type Content, Html, SHOWN_TO, type Texts, alert, errorBelow, html, notice } from './elements.js'
import { impersonationBarOf } from './impersonation-bar.js'
import { english } from './languages/en.js'
import type { AuthError } from '../../errors.js'
import { principalOf } from '../../session/record.js'

/** A link at the end of each page. */
export interface PageLink {
  /** The words of the link, or those of each language: `{ en: 'Privacy', de: 'Datenschutz' }`. */
  label: string | Readonly<Record<string, string>>
  /** A path of the application, or an https: URL. */
  href: string
}

/** How pages look, and the languages that they speak. */
export interface LookOptions {
  readonly name: string | null
  readonly logo: string | null
  readonly logoDark: string | null
  readonly logoHasName: boolean
  readonly stylesheet: string | null
  readonly layout: 'card' | 'plain'
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
  /** What the page shows as its title; default the title itself. */
  readonly heading?: string | null
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
const PLAIN: LookOptions = {
  name: null,
  logo: null,
  logoDark: null,
  logoHasName: false,
  stylesheet: null,
  layout: 'card',
  languages: [english],
  links: [],
  support: null
}

/** The cookie with the language that a visitor chose on a page. */
const LANGUAGE_COOKIE = 'svc_lang'
const LANGUAGE_MAX_AGE_S = 365 * 24 * 60 * 60

/** Makes documents of pages: one layout, whose parts the application chooses. */
export class PageLayout {
  readonly #options: LookOptions
  readonly #policy: string
  /** Where the name of the application leads. */
  readonly #home: string
  readonly #endPath: string | null
  readonly #prefix: string

  /** @param site the application; null before it is known */
  constructor (options: LookOptions = PLAIN, site: Site | null = null, prefix = '') {
    this.#options = options
    this.#prefix = site?.routePath(prefix) ?? '/'
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

  /** The name of the application; null without the option `pages`. */
  get name (): string | null {
    return this.#options.name
  }

  /**
   * Returns the texts in the language that the visitor chose, else in the one that the request
   * prefers, if any; its region writes dates.
   */
  textsFor (request: FastifyRequest): Texts {
    const { languages } = this.#options
    const chosen = chosenIn(request) ?? request.cookies?.[LANGUAGE_COOKIE]
    return languages.find(({ language }) => language === chosen) ??
      preferredTexts(languages, request.headers['accept-language'])
  }

  /** Returns the tag of that language without the region, as the option `languages` has it. */
  languageFor (request: FastifyRequest): string {
    const { language: tag } = this.textsFor(request)
    return this.#options.languages.find(({ language }) => isOfLanguage(tag, language))?.language ?? tag
  }

  send (reply: FastifyReply, page: Page, messages: PageMessages = {}): FastifyReply {
    const { request } = reply
    const texts = this.textsFor(request)
    const chosen = chosenIn(request)
    if (chosen === texts.language && isRead(request)) {
      const secure = request.protocol === 'https'
      reply.setCookie(LANGUAGE_COOKIE, chosen, {
        path: this.#prefix, httpOnly: true, sameSite: 'lax', secure, maxAge: LANGUAGE_MAX_AGE_S
      })
    }
    const { userId } = principalOf(request) ?? {}
    const { source } = this.#document(page, texts, messages, reply)
    const shown = userId && html`<input type="hidden" name="shown_to" value="${shownTo(userId)}">`
    // The script of passkeys asks this origin for options.
    const ofScript = page.script == null ? '' : "; script-src 'self'; connect-src 'self'"
    // The application may have named other headers.
    const Vary = mergedVary(reply.getHeader('Vary'), 'Accept-Language, Cookie')
    const ofIcons = page.hasIcons === true && this.#options.logo === null ? "; img-src 'self'" : ''
    const own = page.leadsElsewhere === true ? this.#policy.replace(/form-action [^;]*; /, '') : this.#policy
    const policy = own + ofScript + ofIcons
    reply.headers({ Vary, 'X-Robots-Tag': 'noindex', 'Content-Security-Policy': policy })
    return reply.type('text/html; charset=utf-8').send(source.replaceAll(SHOWN_TO.source, html`${shown}`.source))
  }

  #document (
    { title, heading, content, script, isWide, refresh }: Page, texts: Texts,
    { failure, notice: done, way, fields = [], isAskedAgain }: PageMessages, reply: FastifyReply
  ): Html {
    const { language, direction } = texts
    const principal = principalOf(reply.request)
    const action = this.#endPath
    const bar = principal?.impersonator !== undefined && action !== null &&
      impersonationBarOf(texts, { principal, action, next: null })
    const { name, logo, stylesheet, layout } = this.#options
    const said = failure && alert(failure, html` id="failure"${isAskedAgain && html` data-passkey-again`}`)
    const { source, isShown } = withInvalidField(html`${content}`.source, fields, html`${said}`.source)
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
<body class="${[layout, isWide && 'wide'].filter(Boolean).join(' ')}" data-part="page">
<div class="frame">
${bar}${name && this.#header(name)}<main data-part="card">
<h1 class="title" data-part="title">${heading || title}</h1>
${!isShown && said}${way}
${done && notice(done)}
${new Html(source)}
</main>
${this.#footer(texts, reply)}</div>
</body>
</html>
`
  }

  #header (name: string): Html {
    const { logo, logoDark, logoHasName } = this.#options
    const picture = logo && html`<picture>${logoDark && html`<source media="(prefers-color-scheme: dark)" srcset="${
      logoDark}">`}<img class="logo" src="${logo}" alt="${logoHasName && name}"></picture>`
    return html`<header class="header" data-part="header"><a href="${this.#home}">${picture}${
      !(picture && logoHasName) && html`<span>${name}</span>`}</a></header>
`
  }

  /** The links of the application, and the other languages of a page that was asked for. */
  #footer (texts: Texts, { request, statusCode }: FastifyReply): Content {
    const { languages, links } = this.#options
    const items = links.map(({ label, href }) => html`<a href="${href}">${wordsOf(label, texts.language)}</a> `)
    // What a failed request has in its query is not repeated.
    const isAsked = isRead(request) && statusCode < 400
    const others = isAsked ? languages.filter(({ language }) => !isOfLanguage(texts.language, language)) : []
    const chooser = others.length > 0 && html`<details class="languages"><summary>${
      nameOfLanguage(texts.language)}</summary>${others.map(({ language }) =>
      html`<a href="${withLanguage(request, language)}" lang="${language}" hreflang="${language}">${
        nameOfLanguage(language)}</a> `)}</details>`
    return (items.length > 0 || chooser) && html`<footer class="footer" data-part="footer">${items}${chooser}</footer>
`
  }
}

/** Returns the language that a visitor chose by a link of the page. */
function chosenIn (request: FastifyRequest): string | null {
  return request.url.includes('lang=') ? new URL(request.url, ANY_ORIGIN).searchParams.get('lang') : null
}

function withLanguage (request: FastifyRequest, language: string): string {
  const { searchParams } = new URL(request.url, ANY_ORIGIN)
  searchParams.set('lang', language)
  return `?${searchParams.toString()}`
}

/** Returns how a language calls itself, such as `Deutsch`. */
function nameOfLanguage (language: string): string {
  const name = new Intl.DisplayNames(language, { type: 'language' }).of(language.replace(/-.*/, '')) ?? language
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1)
}

function wordsOf (label: PageLink['label'], language: string): string {
  if (typeof label === 'string') return label
  const [known = ''] = Object.keys(label).filter(tag => isOfLanguage(language, tag))
  return label[known] ?? Object.values(label)[0] ?? ''
}

/** Shows the alert below its field, in the row that is open, and puts the focus there. */
function withInvalidField (
  source: string, fields: readonly string[], alert: string
): { source: string, isShown: boolean } {
  const start = Math.max(0, source.search(/<details[^>]* open/))
  const form = source.slice(start, start === 0 ? undefined : source.indexOf('</details>', start))
  const name = fields.find(name => form.includes(` name="${name}" autocomplete`))
  const marks = ' aria-invalid="true" aria-describedby="failure" autofocus'
  const marked = name === undefined
    ? source
    : source.slice(0, start) + source.slice(start)
      .replace(` name="${name}" autocomplete`, field => marks + field)
      .replace(errorBelow(name).source, () => alert)
  return { source: marked.replace(/<!--error \w+-->/g, ''), isShown: name !== undefined }
}

/**
 * The style of all pages, by class. An application changes the custom properties in its own
 * stylesheet: `:root { --auth-brand: #7c3aed }`. What is derived of them keeps a contrast of 4.5
 * for each brand. Sides are logical, for scripts from right to left.
 */
const STYLE = `
:root {
  color-scheme: light dark;
  --auth-brand: #4f46e5;
  --auth-on-brand: #fff;
  --auth-radius: .625rem;
  --auth-font: system-ui, sans-serif;
  --auth-back: #f6f7f9;
  --auth-surface: #fff;
  --auth-text: #1f2937;
  --auth-faint: #5b6472;
  --auth-line: #868e9c;
  --auth-rule: color-mix(in srgb, var(--auth-line) 40%, transparent);
  --auth-danger: #b91c1c;
  --auth-width: 25rem;
  --auth-wide: 44rem;
  --auth-gap: .25rem;
}
body {
  --gap: var(--auth-gap);
  --ink: var(--auth-brand);
  --shadow: 0 1px 2px #0000000f, 0 8px 24px #0000000f;
}
@supports (color: oklch(from red min(l, .5) c h)) {
  body { --ink: oklch(from var(--auth-brand) min(l, .5) c h) }
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --auth-back: #0b0f17;
    --auth-surface: #151b26;
    --auth-text: #e5e7eb;
    --auth-faint: #a3adbb;
    --auth-line: #6b7685;
    --auth-danger: #fca5a5;
  }
  body { --shadow: none }
  @supports (color: oklch(from red min(l, .5) c h)) {
    body { --ink: oklch(from var(--auth-brand) max(l, .76) min(c, .14) h) }
  }
  @supports not (color: oklch(from red min(l, .5) c h)) {
    :root { --auth-brand: #a5b4fc; --auth-on-brand: #0b0f17 }
  }
}
* { box-sizing: border-box }
body {
  display: grid; grid-template-columns: minmax(0, var(--auth-width)); place-content: safe center;
  min-block-size: 100vh; min-block-size: 100dvh; margin: 0;
  padding: calc(8 * var(--gap)) calc(4 * var(--gap));
  font: .9375rem/1.4667 var(--auth-font); color: var(--auth-text); background: var(--auth-back);
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; text-size-adjust: 100%;
}
.wide { grid-template-columns: minmax(0, var(--auth-wide)); align-content: start }
.wide .input, .wide .button { max-inline-size: var(--auth-width) }
.plain { --auth-back: var(--auth-surface); --shadow: none }
:lang(ja) { line-break: strict; word-break: auto-phrase }
p { margin: 0 0 calc(4 * var(--gap)) }
ul { list-style: none; margin: 0 0 calc(4 * var(--gap)); padding: 0 }
.header { margin-block-end: calc(6 * var(--gap)) }
.header a {
  display: grid; gap: calc(3 * var(--gap)); justify-items: center; color: inherit; font-weight: 600;
  text-decoration: none;
}
.logo { display: block; block-size: 2.5rem; max-inline-size: 12.5rem; object-fit: contain }
[data-part=card] {
  padding: calc(8 * var(--gap)); border: 1px solid var(--auth-rule); border-radius: calc(2 * var(--auth-radius));
  background: var(--auth-surface); box-shadow: var(--shadow);
}
.plain [data-part=card] { padding-block: 0; border: 0 }
[data-part=card] > :last-child { margin-block-end: 0 }
.title {
  margin: 0 0 calc(6 * var(--gap)); font-size: 1.375rem; font-weight: 600; line-height: 1.2727;
  text-align: center; text-wrap: balance;
}
.title + p { color: var(--auth-faint); text-align: center }
.footer {
  display: flex; flex-wrap: wrap; gap: calc(2 * var(--gap)) calc(4 * var(--gap)); justify-content: center;
  margin-block-start: calc(6 * var(--gap)); font-size: .8125rem; color: var(--auth-faint);
}
.footer a { color: inherit; text-underline-offset: .2em }
.languages summary { cursor: pointer }
.languages a { display: inline-block; margin: calc(2 * var(--gap)) calc(2 * var(--gap)) 0 0 }
.svc-auth-impersonation {
  display: flex; flex-wrap: wrap; gap: calc(2 * var(--gap)) calc(4 * var(--gap)); align-items: center;
  justify-content: space-between; margin-block-end: calc(6 * var(--gap));
  padding: calc(2 * var(--gap)) calc(4 * var(--gap)); border: 2px solid var(--auth-danger);
  border-radius: var(--auth-radius);
}
.svc-auth-impersonation > * { margin: 0 }
.svc-auth-impersonation button {
  min-block-size: 2rem; padding: 0 calc(3 * var(--gap)); font: inherit; color: inherit; cursor: pointer;
  background: none; border: 1px solid; border-radius: var(--auth-radius);
}
h2 { margin: 0 0 calc(2 * var(--gap)); font-size: 1rem; font-weight: 600 }
.section {
  margin-block-start: calc(6 * var(--gap)); padding-block-start: calc(5 * var(--gap));
  border-block-start: 1px solid var(--auth-rule);
}
.title + .section { margin: 0; padding: 0; border: 0 }
.link, [data-part=card] p a { color: var(--ink); text-underline-offset: .2em }
.links { display: grid; gap: calc(2 * var(--gap)); margin: calc(5 * var(--gap)) 0 0; text-align: center }
small, .faint { color: var(--auth-faint); font-size: .875rem; font-weight: 400 }
.item, .line {
  display: flex; flex-wrap: wrap; gap: calc(2 * var(--gap)); align-items: center; justify-content: end;
  padding-block: calc(1.5 * var(--gap));
}
.what { flex: 1 1 12rem }
.what small { display: block }
.item form, .line form, .item button, .item summary { margin: 0 }
.field { position: relative; margin-block-end: calc(4 * var(--gap)) }
.label { display: block; margin-block-end: calc(1.5 * var(--gap)); font-size: .875rem; font-weight: 500 }
.beside { position: absolute; inset-block-start: 0; inset-inline-end: 0; font-size: .875rem }
.input {
  display: block; inline-size: 100%; min-block-size: 2.75rem; margin: 0; padding: 0 calc(3.5 * var(--gap));
  font: 1rem var(--auth-font); color: inherit; background: var(--auth-surface);
  border: 1px solid var(--auth-line); border-radius: var(--auth-radius);
}
[dir=rtl] .input[dir=ltr] { text-align: right }
.hint { display: block; margin-block-start: calc(1.5 * var(--gap)); font-size: .8125rem }
.check {
  display: flex; gap: calc(2.5 * var(--gap)); margin-block-end: calc(4 * var(--gap)); align-items: start;
}
.box {
  flex: none; inline-size: 1.125rem; block-size: 1.125rem; margin: .125rem 0 0; accent-color: var(--auth-brand);
}
.button {
  --fill: var(--auth-surface);
  display: flex; gap: calc(2.5 * var(--gap)); align-items: center; justify-content: center;
  inline-size: 100%; min-block-size: 2.75rem; margin: calc(2.5 * var(--gap)) 0 0;
  padding: calc(2 * var(--gap)) calc(4 * var(--gap));
  font: 500 .9375rem/1.3 var(--auth-font); text-align: center; text-decoration: none; cursor: pointer;
  color: var(--auth-text); background: var(--fill); border: 1px solid var(--auth-line);
  border-radius: var(--auth-radius); appearance: none;
}
.button img { block-size: 1.25rem }
.button:hover { --fill: color-mix(in srgb, var(--auth-surface), var(--auth-text) 6%) }
.primary { --fill: var(--auth-brand); border-color: var(--fill); font-weight: 600 }
.primary:hover { --fill: color-mix(in srgb, var(--auth-brand), var(--auth-text) 12%) }
.primary { color: var(--auth-on-brand) }
@supports (color: color(from red srgb-linear r g b)) {
  .primary {
    --x: clamp(0, (.179 - (.2126 * r + .7152 * g + .0722 * b)) * 1000000, 1);
    color: color(from var(--fill) srgb-linear var(--x) var(--x) var(--x));
  }
}
.quiet { color: var(--ink); border-color: transparent }
.danger { color: var(--auth-danger); border-color: var(--auth-danger) }
.small { inline-size: auto; min-block-size: 2rem; padding: 0 calc(3 * var(--gap)); font-size: .875rem }
.row { border-block-start: 1px solid var(--auth-rule) }
.head {
  display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 calc(4 * var(--gap)); align-items: center;
  padding-block: calc(3 * var(--gap)); color: inherit; text-decoration: none; list-style: none;
}
.head h2 { margin: 0; font-size: .9375rem }
.state { grid-column: 1; color: var(--auth-faint); font-size: .875rem }
.change { grid-area: 1 / 2 / span 2; color: var(--ink); font-size: .875rem; font-weight: 500 }
.head .danger { color: var(--auth-danger) }
.head:hover .change { text-decoration: underline }
summary { cursor: pointer }
.inside { max-inline-size: var(--auth-width); padding-block: calc(2 * var(--gap)) calc(5 * var(--gap)) }
.names summary { display: flex; list-style: none }
.names { display: contents }
.names::details-content { order: 1; flex-basis: 100% }
.names:not([open])::details-content { display: none }
.qr {
  inline-size: 14.5rem; max-inline-size: 100%; margin: 0 auto calc(4 * var(--gap));
  padding: calc(4 * var(--gap)); background: #fff; border-radius: var(--auth-radius); forced-color-adjust: none;
}
.qr svg { display: block }
code { font: 1rem ui-monospace, monospace }
.codes {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr)); user-select: all;
  padding: calc(3 * var(--gap)); background: var(--auth-back); border-radius: var(--auth-radius);
}
.codes li { line-height: 1.75rem }
.remembered, body:has([name=remember]:checked) .once { display: none }
body:has([name=remember]:checked) .remembered { display: block }
.check:has([name=saved]:not(:checked)) + .button { display: none }
.or {
  display: flex; gap: calc(4 * var(--gap)); align-items: center; margin-block: calc(5 * var(--gap));
  font-size: .8125rem; color: var(--auth-faint);
}
.or::before, .or::after { content: ''; flex: 1; border-block-start: 1px solid var(--auth-rule) }
.or + * > .button, .or + .button { margin-block-start: 0 }
:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px }
.error, .notice {
  padding: calc(2.5 * var(--gap)) calc(3.5 * var(--gap)); border: 1px solid;
  border-radius: var(--auth-radius);
}
.error { color: var(--auth-danger) }
.field .error {
  display: flex; gap: calc(1.5 * var(--gap)); margin: calc(1.5 * var(--gap)) 0 0; padding: 0; border: 0;
  font-size: .8125rem;
}
.field .error::before {
  content: '!'; flex: none; inline-size: 1rem; block-size: 1rem; margin-block-start: .0625rem;
  border: 1px solid; border-radius: 50%; font: 700 .6875rem/.875rem var(--auth-font); text-align: center;
}
.input[aria-invalid] { border-color: var(--auth-danger) }
@media (max-width: 30rem) {
  body { --auth-back: var(--auth-surface); align-content: start; padding-block-start: calc(6 * var(--gap)) }
  [data-part=card] { padding: 0; border: 0; background: none; box-shadow: none }
}
@media (max-width: 24rem) {
  .beside { position: static; display: block; margin-block-start: calc(1.5 * var(--gap)); text-align: end }
}
@media print { body { background: #fff } }
`.replace(/([{};:,])\s+/g, '$1').replaceAll(' {', '{').replaceAll(' }', '}')
