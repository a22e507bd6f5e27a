import { brand } from '../../base/values.js'
import { isText } from '../../claims.js'
import { contactUrl, isContact } from '../../core/contact.js'
import { isPath } from '../../core/redirects.js'
import { isSecureUrl } from '../../core/fetching.js'
import { type ChecksOf, boolean, checkedOptions, hasTextsOf, listOf, mustBe, optional } from '../../option-checks.js'
import { ar } from '../../core/pages/languages/ar.js'
import { de } from '../../core/pages/languages/de.js'
import { english } from '../../core/pages/languages/en.js'
import { es } from '../../core/pages/languages/es.js'
import { fr } from '../../core/pages/languages/fr.js'
import { ja } from '../../core/pages/languages/ja.js'
import { PageLayout, type PageLink } from '../../core/pages/layout.js'
import type { Texts } from '../../core/pages/elements.js'

/** Options of {@link Pages}. */
export interface PagesOptions {
  /** The name of the application, on each page. */
  name: string
  /** A picture beside the name: a path of the application, such as `/logo.svg`. */
  logo?: string | undefined
  /** The picture on dark pages; default `logo`. */
  logoDark?: string | undefined
  /** Whether the picture shows the name already; default false. */
  logoHasName?: boolean | undefined
  /** `card` (the default): a card on a tinted page; `plain`: without one. */
  layout?: 'card' | 'plain' | undefined
  /** A stylesheet after the pages' own: a path of the application, such as `/auth.css`. */
  stylesheet?: string | undefined
  /**
   * The languages of the pages; default all that are shipped. Of several, `Accept-Language`
   * chooses, and the first one is for those who speak none of them.
   */
  languages?: readonly Texts[] | undefined
  /** Links at the end of each page, such as to a privacy policy. */
  links?: readonly PageLink[] | undefined
  /**
   * Where users ask for help after a failure, which the page names by the id of the request: an
   * e-mail address, an `https:` URL, or a path of the application.
   */
  support?: string | undefined
}

const OPTIONS = {
  name: mustBe("the name of the application, such as 'Shop'", isText),
  logo: optional(mustBe('a path of this application, such as /logo.svg', isPath), null),
  logoDark: optional(mustBe('a path of this application, such as /logo-dark.svg', isPath), null),
  logoHasName: optional(boolean, false),
  layout: optional(mustBe("'card' or 'plain'", value => value === 'card' || value === 'plain'), 'card'),
  stylesheet: optional(mustBe('a path of this application, such as /auth.css', isPath), null),
  languages: optional(
    mustBe('a list of languages, such as [en, de] of fastify-svc-auth/pages, or of your own texts', areLanguages),
    [english, de, fr, es, ar, ja]
  ),
  links: optional(listOf("a list of { label, href }, such as { label: 'Privacy', href: '/privacy' }; " +
    'href is a path of this application or an https: URL', isLink), []),
  support: optional(mustBe('an e-mail address, an https: URL or a path of this application',
    (value): value is string => isPath(value) || isContact(value)), null)
} satisfies ChecksOf<PagesOptions>

/**
 * Pages for signing in, registering, recovering and managing an account, for the option `pages` of
 * the plugin. Only passkeys need a script.
 *
 * @example
 * ```ts
 * import { Pages } from 'fastify-svc-auth/pages'
 *
 * await app.register(authPlugin, { local, store, pages: new Pages({ name: 'Shop' }) })
 * ```
 */
export class Pages {
  static { brand(this, 'Pages') }
  /**
   * How the pages look. For the plugin.
   *
   * @hidden
   */
  readonly look: PageLayout

  /** @throws OptionsError naming the option */
  constructor (options: PagesOptions) {
    const { languages, support, ...others } = checkedOptions('Pages', options, OPTIONS, "{ name: 'Shop' }")
    const contact = support === null || isPath(support) ? support : contactUrl(support)
    this.look = new PageLayout({ ...others, languages: [...languages], support: contact })
  }
}

function isLink (value: unknown): value is PageLink {
  const { label, href }: { label?: unknown, href?: unknown } = Object(value)
  return (isText(label) || isTextByLanguage(label)) && (isPath(href) || isSecureUrl(href, false))
}

function isTextByLanguage (value: unknown): value is Readonly<Record<string, string>> {
  const texts = typeof value === 'object' && value !== null ? Object.values(value) : []
  return texts.length > 0 && texts.every(isText)
}

/** Whether each language has its texts: a caller without types may have forgotten some. */
function areLanguages (value: unknown): value is readonly [Texts, ...Texts[]] {
  return Array.isArray(value) && value.length > 0 && value.every(texts => hasTextsOf(texts, english))
}
