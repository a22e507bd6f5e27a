import { type AuthContext, hasLocal } from '../context.js'
import { currentStatus } from '../current-user/current.js'
import { assertRecent } from '../current-user/recent.js'
import { AuthError } from '../errors.js'
import { recordIn } from '../session/record.js'
import { signOut, signOutEverywhere } from '../sign-in/sign-out.js'
import { endSessionOfUser, isSessionOf } from '../sign-in/user-sessions.js'
import type { Act } from '../web/act.js'
import { type Form, type FormAnswer, form } from '../web/form.js'
import { checkbox, done, isChecked } from '../web/schema-parts.js'
import { readSession } from './read-session.js'

const route = {
  summary: 'Sign out',
  user: 'signed-in-or-not',
  fields: {
    everywhere: { ...checkbox, description: 'A checkbox: ends all sessions of the user' },
    provider: { ...checkbox, description: 'A checkbox: signs the user out at the provider of the sign-in, too' }
  },
  answers: {
    200: {
      description: 'With `provider`: the URL of the sign-out there, or a page that opens it',
      content: {
        'application/json': { schema: { properties: { url: { type: 'string' } } } }, 'text/html': { schema: {} }
      }
    },
    204: done
  },
  needsElapsedTime: true
} as const

const logout = form({ path: '/logout', ...route }, endSessions)

const revoke = form({ path: '/local/revoke', when: hasLocal, ...route }, endSessions)

/**
 * Ends one session of the signed-in user, who must have authenticated recently: a stolen session
 * must not end those of its owner. For the session of the request it is a sign-out.
 *
 * @see OWASP ASVS 7.5.2
 */
const endListedSession = form({
  path: '/local/sessions/end',
  when: ({ local }) => local?.accountRoutes.sessionsEnd === true,
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
}, async (auth, { request, reply, fields: { id } }) => {
  const record = await currentStatus(auth, request) === null ? null : recordIn(request.session)
  if (record === null) throw new AuthError('unauthenticated')
  assertRecent(record)
  if (isSessionOf(request, id)) return signOut(auth, request, reply)
  const isEnded = await endSessionOfUser(auth, { userId: record.principal.userId, id }, request)
  if (!isEnded) throw new AuthError('not_found', { message: 'The user has no open session with this id.' })
})

const signedOut: Act = {
  when: ({ signOutSealer }) => signOutSealer !== null,
  mount: async mounting => (await import('./provider-sign-out.js')).mountSignedOut(mounting)
}

/** What reads and ends sessions, in the order of the document. */
export const SESSION_ACTS: readonly Act[] = [readSession, logout, revoke, signedOut, endListedSession]

async function endSessions (
  auth: AuthContext, form: Form<{ everywhere?: boolean | string, provider?: boolean | string, next?: string }>
): Promise<FormAnswer | void> {
  const { request, reply, fields: { everywhere, provider } } = form
  const signOutHere = async (): Promise<void> =>
    (isChecked(everywhere) ? signOutEverywhere : signOut)(auth, request, reply)
  if (auth.signOutSealer === null || !isChecked(provider)) return signOutHere()
  return (await import('./provider-sign-out.js')).signOutThere(auth, form, signOutHere)
}
