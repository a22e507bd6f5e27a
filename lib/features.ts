/** The features of the plugin. What loads its acts is a lazy border: see test/start.test.ts. */
import { type AuthContext, hasFactors, hasMails, hasPasswords } from './core/context.js'
import type { Act } from './core/act.js'
import type { Feature } from './core/feature.js'
import type { Section } from './core/pages/page.js'
import { EXTERNAL_ACTS } from './features/identities/callback.js'
import { PASSWORD_ACTS } from './features/password/acts.js'
import { hashing } from './features/password/hashing.js'
import { mountWellKnown } from './features/published.js'
import { SESSION_ACTS } from './features/sessions.js'
import { TOKEN_ACTS } from './features/tokens.js'

/** All of them, in the order of the document of their routes. */
const FEATURES: readonly Feature[] = [
  { sections: async () => (await import('./features/account/page.js')).ACCOUNT_SECTIONS },
  { acts: EXTERNAL_ACTS, sections: async () => [(await import('./features/identities/pages.js')).methodsSection] },
  {
    acts: PASSWORD_ACTS,
    sections: async () => [(await import('./features/password/page.js')).passwordSection],
    preload: auth => hasPasswords(auth) && hashing.preload()
  },
  { acts: TOKEN_ACTS },
  {
    when: hasMails,
    acts: async () => (await import('./features/mail-acts.js')).MAIL_ACTS,
    sections: async () => [(await import('./features/email-page.js')).emailSection]
  },
  {
    when: hasFactors,
    acts: async () => (await import('./features/factor-acts.js')).FACTOR_ACTS,
    sections: async () => (await import('./features/second-factor/factors-page.js')).FACTOR_SECTIONS,
    preload: ({ factors: { passkeys } }) => passkeys?.preload()
  },
  {
    when: ({ hasPages }) => hasPages,
    acts: async () => (await import('./features/page-acts.js')).pageActs(await loadSections())
  },
  {
    acts: SESSION_ACTS,
    sections: async () => (await import('./features/sessions-page.js')).SESSION_SECTIONS,
    mountDocuments: mountWellKnown
  }
]

/** Returns the features that the options ask for. */
export function featuresOf (auth: AuthContext): readonly Feature[] {
  return FEATURES.filter(({ when }) => when?.(auth) ?? true)
}

/** Loads what users can do, in its order. */
export async function actsOf (features: readonly Feature[]): Promise<Act[]> {
  const acts: Act[] = []
  for (const { acts: own = [] } of features) acts.push(...typeof own === 'function' ? await own() : own)
  return acts
}

/** Loads the parts of the account page, in its order. */
async function loadSections (): Promise<Section[]> {
  const sections = await Promise.all(FEATURES.map(({ sections: load }) => load?.() ?? []))
  return sections.flat().sort((one, other) => one.order - other.order)
}

/** Returns the members that features add to `app.auth`, whatever the options. */
export function membersOf (auth: AuthContext): object {
  return Object.assign({}, ...FEATURES.map(({ api }) => api?.(auth)))
}
