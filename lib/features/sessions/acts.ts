import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Act } from '../../core/act.js'
import { answerWithStatus } from '../../core/failure-answer.js'
import { WHILE_IMPERSONATING, refuseImpersonation } from '../../core/acting.js'
import type { AuthContext } from '../../core/context.js'
import { currentPrincipal, currentStatus } from '../../core/current-user.js'
import { userOrGuest } from '../../core/guests.js'
import { type FormAnswer, form } from '../../core/form.js'
import { openapiComponents } from '../../core/openapi.js'
import { assertRecent } from '../recent.js'
import { checkbox, done, isChecked, objectOf, operation } from '../../core/schema.js'
import { signOut } from '../../core/sign-out.js'
import type { Submission } from '../../core/submission.js'
import { AuthError } from '../../errors.js'
import { authenticationOf, recordIn } from '../../session/record.js'
import { endSessionOfUser, isSessionOf } from './list.js'
import { announceRevoke, audit } from '../../audit.js'

const { Principal: principal } = openapiComponents.schemas

const offered = {
  password: { type: 'boolean' },
  registration: { type: 'boolean', description: 'By a password or a passkey' },
  passwordReset: { type: 'boolean', description: 'By a link in a mail' },
  mail: { type: 'boolean', description: 'By a link or a code in a mail' },
  passkeys: { type: 'boolean' },
  remember: { type: 'boolean', description: 'Whether a checkbox `remember` makes a longer session' },
  providers: { type: 'array', items: { type: 'string' }, description: 'The names of the external providers' },
  impersonating: { type: 'boolean', description: 'Whether the user is shown to another one, who can end that' }
}

const time = { type: 'string', format: 'date-time' }

const authentication = objectOf('How and when the user authenticated; null for a visitor', {
  at: time,
  methods: {
    type: 'array',
    items: { type: 'object', required: ['method', 'at'], properties: { method: { type: 'string' }, at: time } }
  },
  secondFactor: { type: 'boolean', description: 'Whether a second factor was among the methods' }
})

const sessionSchema = operation({
  summary: 'Read the session',
  description: 'The first request of a front end. A visitor gets no cookie.',
  operationId: 'authSession',
  user: 'signed-in-or-not',
  answers: {
    200: objectOf('Who is signed in, and how users may sign in', {
      principal: { ...principal, type: ['object', 'null'], description: 'The signed-in user; null for a visitor' },
      authentication: { ...authentication, type: ['object', 'null'] },
      offers: objectOf('How users may sign in', offered)
    })
  },
  refuses: ['unavailable']
})

export const readSession: Act = {
  mount ({ scope, auth }) {
    const options = {
      schema: sessionSchema, errorHandler: answerWithStatus, exposeHeadRoute: false, config: WHILE_IMPERSONATING
    }
    scope.get('/session', options, async request => {
      const principal = await userOrGuest(auth, request)
      const impersonating = principal?.impersonator !== undefined
      return { principal, authentication: authenticationOf(request), offers: { ...offersOf(auth), impersonating } }
    })
  }
}

function offersOf ({ formPaths, remember, providers }: AuthContext): Record<string, boolean | string[]> {
  return {
    password: formPaths.has('local/login'),
    registration: formPaths.has('local/register'),
    passwordReset: formPaths.has('local/forgot-password'),
    mail: formPaths.has('local/mail-login'),
    passkeys: formPaths.has('local/passkeys/login'),
    remember: remember !== null,
    providers: providers.map(({ name }) => name)
  }
}

const route = {
  whileImpersonating: true,
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

const revoke = form({ path: '/local/revoke', when: ({ local }) => local !== null, ...route }, endSessions)

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
  mount: async mounting => (await import('../identities/sign-out.js')).mountSignedOut(mounting)
}

/** What reads and ends sessions, in the order of the document. */
export const SESSION_ACTS: readonly Act[] = [readSession, logout, revoke, signedOut, endListedSession]

async function endSessions (
  auth: AuthContext,
  submission: Submission<{ everywhere?: boolean | string, provider?: boolean | string, next?: string }>
): Promise<FormAnswer | void> {
  const { request, reply, fields: { everywhere, provider } } = submission
  const signOutHere = async (): Promise<void> =>
    (isChecked(everywhere) ? signOutEverywhere : signOut)(auth, request, reply)
  if (auth.signOutSealer === null || !isChecked(provider)) return signOutHere()
  return (await import('../identities/sign-out.js')).signOutThere(auth, submission, signOutHere)
}

/** Signs a user out everywhere: ends all of their sessions, then the one of the request. */
async function signOutEverywhere (auth: AuthContext, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  // The present user is the one who is shown.
  refuseImpersonation(request)
  // A session that has ended already must not end sessions of a later sign-in.
  const principal = await currentPrincipal(auth, request)
  if (principal === null) return signOut(auth, request, reply)
  const { userId } = principal
  await auth.accounts.changeUser(userId, { endSessions: true })
  audit('sign-out-everywhere', { userId }, request)
  announceRevoke(auth.channel, userId, request)
  await signOut(auth, request, reply, userId)
}
