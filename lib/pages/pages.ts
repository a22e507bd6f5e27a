import { isPlainObject, isText } from '../claims.js'
import { OptionsError, assertKnownOptions } from '../errors.js'
import { ANY_ORIGIN, sameOriginPath } from '../http/redirects.js'
import { isSecureUrl } from '../http/secure-url.js'
import { de } from './languages/de.js'
import { english } from './languages/en.js'
import { es } from './languages/es.js'
import { fr } from './languages/fr.js'
import { PageLayout, type PageLink } from './page-layout.js'
import type { Texts } from './texts.js'

/** Options of {@link Pages}. */
export interface PagesOptions {
  /** The name of the application, on each page. */
  name: string
  /** A picture beside the name: a path of the application, such as `/logo.svg`. */
  logo?: string | undefined
  /** A stylesheet after that of the pages: a path of the application, such as `/auth.css`. */
  stylesheet?: string | undefined
  /**
   * The languages of the pages; default all that are shipped. Of several, `Accept-Language`
   * chooses, and the first one is for those who speak none of them.
   */
  languages?: readonly Texts[] | undefined
  /** Links at the end of each page, such as to a privacy policy. */
  links?: readonly PageLink[] | undefined
}

const KNOWN_OPTIONS = ['name', 'logo', 'stylesheet', 'languages', 'links']

/**
 * Pages for signing in, registering, recovering and managing an account, for the option `pages` of
 * the plugin. They need no script.
 *
 * @example
 * ```ts
 * import { Pages } from 'fastify-svc-auth/pages'
 *
 * await app.register(authPlugin, { local, store, pages: new Pages({ name: 'Shop' }) })
 * ```
 */
export class Pages {
  /**
   * How the pages look. For the plugin.
   *
   * @hidden
   */
  readonly look: PageLayout

  /** @throws OptionsError naming the option */
  constructor (options: PagesOptions) {
    if (!isPlainObject(options)) throw new OptionsError("Pages takes an object of options, such as { name: 'Shop' }")
    assertKnownOptions('Pages', options, KNOWN_OPTIONS)
    const { name, logo = null, stylesheet = null, languages = [english, de, fr, es], links = [] } = options
    if (!isText(name)) throw new OptionsError("name of Pages must be the name of the application, such as 'Shop'")
    for (const [option, path] of [['logo', logo], ['stylesheet', stylesheet]] as const) {
      if (path !== null && !isPath(path)) {
        throw new OptionsError(`${option} of Pages must be a path of this application, such as /${option}`)
      }
    }
    const [first, ...others] = Array.isArray(languages) ? languages : []
    if (!isLanguage(first) || !others.every(isLanguage)) {
      throw new OptionsError('languages of Pages must be a list of languages, such as [en, de] of ' +
        'fastify-svc-auth/pages, or of your own texts')
    }
    if (!Array.isArray(links) || !links.every(isLink)) {
      throw new OptionsError("links of Pages must be a list of { label, href }, such as { label: 'Privacy', " +
        "href: '/privacy' }; href is a path of this application or an https: URL")
    }
    this.look = new PageLayout({ name, logo, stylesheet, languages: [first, ...others], links: [...links] })
  }
}

function isPath (value: unknown): boolean {
  return sameOriginPath(value, ANY_ORIGIN) === value
}

function isLink (value: unknown): value is PageLink {
  const { label, href }: { label?: unknown, href?: unknown } = Object(value)
  return isText(label) && (isPath(href) || isSecureUrl(href, false))
}

/** Whether a value has the texts of a language: a caller without types may have forgotten some. */
function isLanguage (value: unknown): value is Texts {
  return isComplete(value, english)
}

function isComplete (value: unknown, model: object): boolean {
  return isPlainObject(value) && Object.entries(model).every(([name, text]) =>
    typeof text === 'string' ? isText(value[name]) : isComplete(value[name], text))
}
