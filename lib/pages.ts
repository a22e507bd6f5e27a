/**
 * Pages for signing in, registering, recovering and managing an account, in several languages.
 *
 * @module fastify-svc-auth/pages
 */
import { english } from './core/pages/languages/en.js'
import type { Texts } from './core/pages/elements.js'

export type { PageLink } from './core/pages/layout.js'
export { Pages, type PagesOptions } from './features/pages/pages.js'
export type { Texts } from './core/pages/elements.js'
export { ar } from './core/pages/languages/ar.js'
export { de } from './core/pages/languages/de.js'
export { es } from './core/pages/languages/es.js'
export { fr } from './core/pages/languages/fr.js'
export { ja } from './core/pages/languages/ja.js'

/** The pages in English. */
export const en: Texts = english
