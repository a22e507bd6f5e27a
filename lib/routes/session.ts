import { endListedSession } from '../flows/sessions.js'
import { signOut, signOutEverywhere } from '../flows/sign-out.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import type { RouteContext } from './context.js'
import { mountForm } from './form-route.js'
import { checkbox, isChecked } from './schema-parts.js'

/**
 * Mounts the route that signs a user out.
 *
 * @param local mounts it under its path too, and there the one that ends another session
 */
export function mountSessionRoutes (context: RouteContext, local: LocalIdentityProvider | null): void {
  const { rules: { store }, channel, listedSessions } = context

  for (const path of local === null ? ['/logout'] : ['/logout', '/local/revoke']) {
    mountForm(context, {
      path,
      summary: 'Sign out',
      user: 'signed-in-or-not',
      fields: { everywhere: { ...checkbox, description: 'A checkbox: ends all sessions of the user' } },
      needsElapsedTime: true
    }, async ({ request, reply, fields: { everywhere } }) => {
      const end = isChecked(everywhere) ? signOutEverywhere : signOut
      await end(request, reply, { store, channel })
    })
  }

  if (local?.accountRoutes.sessionsEnd !== true) return
  mountForm(context, {
    path: '/local/sessions/end',
    operationId: 'authLocalEndSession',
    summary: 'End one session of the signed-in user',
    description: 'The last authentication must be less than ten minutes old. ' +
      'The present session ends as by a sign-out.',
    user: 'signed-in',
    fields: {
      id: { type: 'string', pattern: '^[A-Za-z0-9_-]{32}$', description: 'From the list of `app.auth.sessions`' }
    },
    required: ['id'],
    refuses: ['reauthenticate', 'not_found', 'unsupported']
  }, async ({ request, reply, fields: { id } }) => {
    await endListedSession(request, reply, { store, channel, listedSessions }, id)
  })
}
