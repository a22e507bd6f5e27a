import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { shownTo } from '../http/shown-to.js'
import type { Site } from '../http/site.js'
import { mergedVary } from '../http/vary.js'
import { SHOWN_TO } from './form.js'
import { type Content, Html, html } from './html.js'
import { english } from './languages/en.js'
import { STYLE } from './style.js'
import type { Texts } from './texts.js'

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
  /** The URL that the browser opens at once, with and without scripts. */
  readonly refresh?: string
}

/** Sentences about a request before: of its error, or of its success. */
export interface PageMessages {
  readonly failure?: string | null
  readonly notice?: string | null
  /** The names of the fields that the failure may be about: the first one that the form has. */
  readonly fields?: readonly string[]
  /** Whether the script of passkeys asks once more, as the challenge is another one by now. */
  readonly isAskedAgain?: boolean
}

/** The look of pages without the option `pages`. */
const PLAIN: LookOptions = { name: null, logo: null, stylesheet: null, languages: [english], links: [] }

/** A language with a region: other parts of a tag may be invalid, or choose another calendar. */
const REGIONAL = /^[a-z]{2,3}-[a-z]{2}$/i

/** Makes documents of pages: one layout, whose parts the application chooses. */
export class PageLayout {
  readonly #options: LookOptions
  readonly #policy: string
  /** Where the name of the application leads. */
  readonly #home: string

  /** @param site the application; null before it is known */
  constructor (options: LookOptions = PLAIN, site: Site | null = null) {
    this.#options = options
    this.#home = site?.publicPath('/') ?? '/'
    const { logo, stylesheet } = options
    const style = `'sha256-${hash('sha256', STYLE, 'base64')}'`
    // A page may hold a token: it runs nothing, loads nothing from elsewhere, and is not framed.
    this.#policy = `default-src 'none'; style-src ${style}${stylesheet === null ? '' : " 'self'"}; ` +
      `${logo === null ? '' : "img-src 'self'; "}form-action ${["'self'", ...site?.trustedOrigins ?? []].join(' ')}; ` +
      "frame-ancestors 'none'; base-uri 'none'"
  }

  /** Returns the same look for the pages of a site, whose forms may lead to its trusted origins. */
  of (site: Site): PageLayout {
    return new PageLayout(this.#options, site)
  }

  /** Returns the texts in the language that a request prefers, if any; its region writes dates. */
  textsFor (request: FastifyRequest): Texts {
    const { languages } = this.#options
    // Browsers name a few. A server that admits long headers would sort many.
    const accepted = request.headers['accept-language']?.slice(0, 1000)
    for (const preferred of new Negotiator({ headers: { 'accept-language': accepted } }).languages()) {
      const texts = languages.find(({ language }) => isOfLanguage(preferred, language))
      if (texts !== undefined) return REGIONAL.test(preferred) ? { ...texts, language: preferred } : texts
    }
    return languages[0]
  }

  /** Returns the tag of that language without the region, as the option `languages` has it. */
  languageFor (request: FastifyRequest): string {
    const { language: tag } = this.textsFor(request)
    return this.#options.languages.find(({ language }) => isOfLanguage(tag, language))?.language ?? tag
  }

  send (reply: FastifyReply, page: Page, messages: PageMessages = {}): FastifyReply {
    const { source } = this.#document(page, this.textsFor(reply.request), messages)
    const { userId } = reply.request.principal ?? {}
    const shown = userId && html`<input type="hidden" name="shown_to" value="${shownTo(userId)}">`
    // The script of passkeys asks this origin for options.
    const ofScript = page.script == null ? '' : "; script-src 'self'; connect-src 'self'"
    // The application may have named other headers.
    const Vary = mergedVary(reply.getHeader('Vary'), 'Accept-Language, Cookie')
    const ofIcons = page.hasIcons === true && this.#options.logo === null ? "; img-src 'self'" : ''
    const policy = this.#policy + ofScript + ofIcons
    reply.headers({ Vary, 'X-Robots-Tag': 'noindex', 'Content-Security-Policy': policy })
    const marked = withInvalidField(source, messages.fields ?? [])
    return reply.type('text/html; charset=utf-8').send(marked.replaceAll(SHOWN_TO.source, html`${shown}`.source))
  }

  #document (
    { title, content, script, isWide, refresh }: Page, { language, direction }: Texts,
    { failure, notice, isAskedAgain }: PageMessages
  ): Html {
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
${name && html`<header><a href="${this.#home}">${logo && html`<img src="${logo}" alt="">`}${name}</a></header>`}
<main>
<h1>${title}</h1>
${failure && html`<p role="alert" id="failure"${isAskedAgain && html` data-passkey-again`}>${failure}</p>`}
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

/** Whether a tag names a language, or a part of it: `de-AT` is German (RFC 4647 section 3.4). */
function isOfLanguage (preferred: string, language: string): boolean {
  const [tag, known] = [`${preferred}-`.toLowerCase(), `${language}-`.toLowerCase()]
  return tag.startsWith(known) || known.startsWith(tag)
}
