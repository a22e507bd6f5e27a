/**
 * Pages for signing in, registering, recovering and managing an account, in several languages.
 *
 * @module fastify-svc-auth/pages
 */
import { english } from './pages/languages/en.js'
import type { Texts } from './pages/texts.js'

export type { PageLink } from './pages/page-layout.js'
export { Pages, type PagesOptions } from './pages/pages.js'
export type { Texts } from './pages/texts.js'
export { de } from './pages/languages/de.js'
export { es } from './pages/languages/es.js'
export { fr } from './pages/languages/fr.js'

/** The pages in English. */
export const en: Texts = english
