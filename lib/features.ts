/** The features of the plugin. What loads its acts is a lazy border: see test/start.test.ts. */
import type { FastifyBaseLogger } from 'fastify'
import type { AuthContext, Method } from './core/context.js'
import { hasFactors } from './core/methods.js'
import type { Act } from './core/act.js'
import type { Feature } from './core/feature.js'
import type { Section } from './core/pages/page.js'
import { keyMembers } from './features/api-keys/members.js'
import { refuseEndedSessions } from './features/back-channel-logout/ended-sessions.js'
import { connectionMembers } from './features/connections/members.js'
import { EXTERNAL_ACTS } from './features/identities/callback.js'
import { PASSWORD_ACTS } from './features/password/acts.js'
import { hashing } from './features/password/hashing.js'
import { guestMembers, sweepGuests } from './features/guests/guests.js'
import { grantMembers } from './features/oauth-server/members.js'
import { IMPERSONATION } from './features/impersonation/impersonation.js'
import { mountWellKnown } from './features/published.js'
import { SESSION_ACTS } from './features/sessions/acts.js'
import { byProvider } from './features/identities/method.js'
import { byMail } from './features/mail-sign-in/method.js'
import { watchBrowsers } from './features/new-browser/new-browser.js'
import { byPasskey } from './features/passkeys/method.js'
import { byPassword } from './features/password/method.js'
import { byApp, byRecoveryCode } from './features/second-factor/methods.js'
import { callerMembers } from './features/callers/callers.js'
import { TOKENS } from './features/tokens/acts.js'
import { hasMails, hasPasswords } from './features/local/offers.js'

/** All of them, in the order of the document of their routes. */
const FEATURES: readonly Feature[] = [
  { mountDocuments: mountWellKnown },
  { sections: async () => (await import('./features/account/page.js')).ACCOUNT_SECTIONS },
  { acts: EXTERNAL_ACTS, sections: async () => [(await import('./features/identities/pages.js')).methodsSection] },
  {
    when: ({ providers, parts }) => parts.connections !== null ||
      providers.some(({ backChannelLogout }) => backChannelLogout === true),
    acts: async () => (await import('./features/back-channel-logout/acts.js')).LOGOUT_ACTS
  },
  // Also in a process whose providers lack the option: sessions are shared.
  { addHooks: refuseEndedSessions },
  {
    acts: PASSWORD_ACTS,
    sections: async () => [(await import('./features/password/page.js')).passwordSection],
    preload: auth => hasPasswords(auth) && hashing.preload()
  },
  TOKENS,
  { api: callerMembers },
  { api: guestMembers, addHooks: sweepGuests },
  {
    when: hasMails,
    acts: async () => (await import('./features/mail-acts.js')).MAIL_ACTS,
    sections: async () => [(await import('./features/email/page.js')).emailSection]
  },
  {
    when: hasFactors,
    acts: async () => (await import('./features/factor-acts.js')).FACTOR_ACTS,
    sections: async () => [
      (await import('./features/passkeys/page.js')).passkeysSection,
      (await import('./features/second-factor/factors-page.js')).factorsSection
    ],
    preload: ({ parts }) => parts.passkeys?.ceremonies.preload(),
    requirement: ({ parts }) => parts.secondFactor?.required ?? null,
    checkSignIn: async (auth, request, findings, proof) => hasFactors(auth)
      ? (await import('./features/second-factor/sign-in.js')).checkSecondFactor(auth, request, findings, proof)
      : proof
  },
  {
    when: ({ hasPages }) => hasPages,
    acts: async auth => (await import('./features/pages/acts.js')).pageActs(await loadSections(auth))
  },
  {
    when: ({ parts }) => parts.oauthServer !== null,
    acts: async () => (await import('./features/oauth-server/acts.js')).OAUTH_ACTS,
    sections: async ({ parts }) => parts.oauthServer === null
      ? []
      : [(await import('./features/oauth-server/account.js')).grantsSection],
    mountDocuments: async (scope, auth) =>
      (await import('./features/oauth-server/metadata.js')).mountServer(scope, auth),
    // The log says at the start that its tables are missing.
    preload: async ({ parts }) => parts.oauthServer?.grants.find(''),
    api: grantMembers
  },
  {
    when: ({ parts }) => parts.apiKeys !== null,
    acts: async () => (await import('./features/api-keys/acts.js')).KEY_ACTS,
    sections: async ({ parts }) => parts.apiKeys === null
      ? []
      : [(await import('./features/api-keys/section.js')).keysSection],
    // The log says at the start that the table is missing.
    preload: async ({ parts }) => parts.apiKeys?.keys.find(''),
    api: keyMembers
  },
  {
    when: ({ parts }) => parts.connections !== null,
    acts: async () => (await import('./features/connections/acts.js')).CONNECTION_ACTS,
    // The log says at the start that the tables are missing.
    preload: async ({ parts }) => parts.connections?.rows.find(''),
    connectionRule: ({ parts }) => parts.connections?.rule ?? null,
    api: connectionMembers
  },
  { addHooks: watchBrowsers },
  {
    acts: SESSION_ACTS,
    sections: async () => (await import('./features/sessions/page.js')).SESSION_SECTIONS
  },
  IMPERSONATION
]

/** The ways to authenticate, in the order in which pages ask for them. */
export const METHODS: readonly Method[] = [byApp, byPassword, byMail, byPasskey, byRecoveryCode, byProvider]

export const SIGN_IN_CHECKS = FEATURES.flatMap(({ checkSignIn }) => checkSignIn ?? [])

/** Returns what says whether the application requires a second factor; null for nothing. */
export function requirementOf (auth: Pick<AuthContext, 'parts'>): AuthContext['requiresFactor'] {
  return FEATURES.flatMap(({ requirement }) => requirement?.(auth) ?? [])[0] ?? null
}

/** Returns what says whether a user may act as another one; null for never. */
export function actingRuleOf (auth: Pick<AuthContext, 'parts'>): AuthContext['mayAct'] {
  return FEATURES.flatMap(({ actingRule }) => actingRule?.(auth) ?? [])[0] ?? null
}

/** Returns which users must sign in by a connection; null for none. */
export function connectionRuleOf (auth: Pick<AuthContext, 'parts'>): AuthContext['connectionRule'] {
  return FEATURES.flatMap(({ connectionRule }) => connectionRule?.(auth) ?? [])[0] ?? null
}

/** Returns the features that the options ask for. */
export function featuresOf (auth: AuthContext): readonly Feature[] {
  return FEATURES.filter(({ when }) => when?.(auth) ?? true)
}

/** Loads what users can do, in its order. */
export async function actsOf (features: readonly Feature[], auth: AuthContext): Promise<Act[]> {
  const acts: Act[] = []
  for (const { acts: own = [] } of features) acts.push(...typeof own === 'function' ? await own(auth) : own)
  return acts
}

/** Loads the parts of the account page, in its order. */
async function loadSections (auth: AuthContext): Promise<Section[]> {
  const sections = await Promise.all(FEATURES.map(({ sections: load }) => load?.(auth) ?? []))
  return sections.flat().sort((one, other) => one.order - other.order)
}

/** Returns the members that features add to `app.auth`, whatever the options. */
export function membersOf (auth: AuthContext, log: FastifyBaseLogger): object {
  return Object.assign({}, ...FEATURES.map(({ api }) => api?.(auth, log)))
}
