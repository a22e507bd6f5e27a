/** What users do with passkeys. It is loaded only with an option of factors. */
import type { FastifyRequest } from 'fastify'
import { type Factor, type User, userOf, withFactors } from '../../accounts/account.js'
import { changeOf, withoutFactors } from '../../accounts/factors.js'
import { audit } from '../../audit.js'
import { isUserId, uuidToBase64url } from '../../base/values.js'
import { type AuthContext, needed } from '../../core/context.js'
import { current, currentPrincipal } from '../../core/current-user.js'
import { recent } from '../recent.js'
import { AuthError, PASSKEY_EXISTS } from '../../errors.js'
import { CEREMONY_MS, PASSKEY, type PasskeyCeremonies, passkeyName, readResponse } from './ceremonies.js'
import { PASSKEY_SCRIPT, PASSKEY_SCRIPT_VERSION } from './script.js'
import { putEntry } from '../../session/lifecycle.js'
import { principalOf } from '../../session/record.js'
import { type FactorSubmission, countAttempt, pendingSecondFactor } from '../second-factor/sign-in.js'
import {
  type Ceremony, type Challenge, completePasskeysOf, countedResponse, passkeysIn, takeChallenge, usePasskey
} from './sign-in.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import { identityOfUser, signIn, withoutWrites } from '../../core/sign-in.js'
import { CHALLENGE } from '../../session/store.js'
import type { Act } from '../../core/act.js'
import { WHILE_IMPERSONATING } from '../../core/acting.js'
import { allowCaching } from '../published.js'
import { ACCEPTED, type FormAnswer, form, signedInAs } from '../../core/form.js'
import { accepted, isChecked, objectOf, operation, remember, signedIn, token } from '../../core/schema.js'
import {
  type EnrollingUser, addFactor, assertMailCode, assertNotRequired, changeOwnFactors, enrollingUser, isCodeMailed,
  requireRecentFactor, sendMailCode
} from '../second-factor/enrolment.js'
import { canSignIn, hasFactorThat } from '../../core/methods.js'
import { byPasskey } from './method.js'
import { beginSignUp } from './sign-up.js'
import { canRegisterByPasskey } from '../local/offers.js'
import type { Submission } from '../../core/submission.js'
import { lost, lostPasskeysIn, mailCode, passkeyResponse } from '../second-factor/schema.js'

const MAX_CHALLENGES_OF_SESSION = 16
const MAX_PASSKEYS_OF_USER = 20

const id = { type: 'string', maxLength: 2048, description: 'The id of the passkey' } as const
const name = { type: 'string', maxLength: 1000, description: 'At most 64 characters' } as const

const added = objectOf('The passkey', { id: { type: 'string' }, name: { type: 'string' } })

const left = objectOf(
  'For PublicKeyCredential.signalAllAcceptedCredentials: the user, and the passkeys that are left', {
    userId: { type: 'string', description: 'The user handle, as base64url' },
    accepted: { type: 'array', items: { type: 'string' } }
  })

/** What a response may be refused with once it is counted. */
const COUNTED = ['rate_limited', 'busy'] as const

export const beginCeremony = form({
  path: '/local/passkeys/options',
  when: byPasskey.isOffered,
  operationId: 'authLocalPasskeyOptions',
  summary: 'Begin a ceremony of passkeys',
  description: 'The challenge works once, in this session, for five minutes.',
  user: 'signed-in-or-not',
  fields: {
    for: {
      type: 'string', enum: ['register', 'create', 'login', 'factor'], description: 'What the passkey is for'
    },
    lost,
    token: { ...token, description: 'Of the link to register, for the passkey of a new user; with `register`' }
  },
  required: ['for'],
  answers: {
    200: { type: 'object', description: 'Options for `navigator.credentials`, as JSON', additionalProperties: true }
  },
  refuses: [
    'unauthenticated', 'reauthenticate', 'invalid_state', 'blocked', 'sso_required', 'invalid_token', 'exists',
    'account_exists'
  ],
  limits: ['challenge'],
  // The token is no secret that it uses: each request gets a challenge of its own.
  again: begin
}, begin)

/** What a client may ask for: a token makes `register` a sign-up. */
type ForCeremony = Exclude<Ceremony, 'sign-up'>

async function begin (auth: AuthContext, submission: Submission<{
  for: ForCeremony, lost?: boolean | string, token?: string
}>): Promise<FormAnswer> {
  const { for: ceremony, lost, token } = submission.fields
  const isSignUp = ceremony === 'register' && token !== undefined && canRegisterByPasskey(auth)
  const { challenge, options, ...of } = isSignUp
    ? { ceremony: 'sign-up' as const, ...await beginSignUp(auth, submission.request, token) }
    : { ceremony, ...await begun(auth, submission, ceremony, isChecked(lost)) }
  const content: Challenge = { ...of, expiresAt: Date.now() + CEREMONY_MS }
  await putEntry(submission.request, CHALLENGE, content, { key: challenge, most: MAX_CHALLENGES_OF_SESSION })
  return { status: 200, body: options }
}

export const registerPasskey = form({
  path: '/local/passkeys/register',
  when: byPasskey.isOffered,
  operationId: 'authLocalPasskeyRegister',
  summary: 'Add a passkey',
  description: 'The last authentication must be less than ten minutes old, by a factor of the user if they have ' +
    'one. A sign-in that waits for it is finished.',
  user: 'signed-in-or-not',
  fields: { response: passkeyResponse, name, lost, mailCode },
  required: ['response'],
  answers: { 201: added },
  refuses: [
    'invalid', 'invalid_code', 'invalid_state', 'unauthenticated', 'reauthenticate', 'exists', 'too_many', 'blocked',
    'sso_required', ...COUNTED
  ],
  isSignInAttempt: true,
  async again (auth, { request, fields: { response } }) {
    const { user: { userId } } = await current(auth, request)
    const passkey = passkeysIn(await auth.accounts.factors(userId)).find(({ id }) => id === readResponse(response)?.id)
    if (passkey === undefined) throw noPasskey()
    return { status: 201, body: { id: passkey.id, name: passkey.name } }
  }
}, async (auth, submission) => {
  const { request, fields: { name = null, ...fields } } = submission
  const { isLost, mailCode } = lostPasskeysIn(fields)
  const counted = await countedResponse(auth, request, fields.response)
  // First, so that a form whose options were refused is refused for the same reason.
  const enrolling = await enrollingUser(auth, request, isLost)
  const { user, waiting, asksMailCode } = enrolling
  await refusePasskey(auth, enrolling)
  // Another process requires it.
  if (waiting !== null) needed(auth.parts.secondFactor, 'secondFactor')
  const response = await takeChallenge(request, counted, 'register', 'create')
  if (asksMailCode) await spendMailAttempt(auth, submission, user, mailCode)
  const isSilent = response.ceremony === 'create'
  if (isSilent) assertWithoutFactor(user)
  const passkey = await needed(auth.parts.passkeys, 'passkeys').ceremonies
    .verifyRegistration(response, { challenge: response.challenge, name, isSilent })
  await addFactor(auth, submission, enrolling, {
    proof: { method: 'passkey', at: Date.now() },
    isSilent,
    // In place of passkeys that were lost: sessions of who has found them end.
    endsSessions: asksMailCode && waiting === null,
    change (factors) {
      if (factors.some(({ id }) => id === passkey.id)) throw new AuthError('exists', { message: PASSKEY_EXISTS })
      if (passkeysIn(factors).length >= MAX_PASSKEYS_OF_USER) throw new AuthError('too_many')
      return [...factors, passkey]
    }
  })
  return { status: 201, body: { id: passkey.id, name: passkey.name } }
})

/**
 * Signs a user in by a passkey, which is both factors. One that nobody has is refused as if wrong.
 *
 * @see WebAuthn Level 3 section 7.2
 */
export const signInByPasskey = form({
  path: '/local/passkeys/login',
  when: byPasskey.isOffered,
  operationId: 'authLocalPasskeyLogin',
  summary: 'Sign in with a passkey',
  user: 'anyone',
  fields: { response: passkeyResponse, remember },
  required: ['response'],
  allowsExtraFields: true,
  answers: { 200: signedIn },
  refuses: ['invalid', 'unknown_passkey', 'invalid_state', 'unauthenticated', 'blocked', 'sso_required', ...COUNTED],
  isSignInAttempt: true
}, async (auth, submission) => {
  const { request, fields: { response: field, remember } } = submission
  const response = await takeChallenge(request, await countedResponse(auth, request, field), 'login')
  const { userId } = response
  const found = isUserId(userId) ? await auth.accounts.findUser({ userId }) : null
  const { user } = await usePasskey(auth, submission, found, response)
  const identity = identityOfUser(user, await auth.accounts.links(user.userId))
  return signedInAs(await signIn(auth, request, {
    ...withoutWrites(user), identity, method: 'passkey', remember: isChecked(remember)
  }))
})

export const renamePasskey = form({
  path: '/local/passkeys/rename',
  when: byPasskey.isOffered,
  operationId: 'authLocalPasskeyRename',
  summary: 'Rename a passkey of the signed-in user',
  description: 'The last authentication must be less than ten minutes old.',
  user: 'signed-in',
  fields: { id, name },
  required: ['id', 'name'],
  refuses: ['reauthenticate', 'not_found']
}, async (auth, { request, fields: { id, name } }) => {
  const { record: { principal: { userId }, generation } } = await recent(auth, request)
  const shown = passkeyName(name)
  const renamed = await auth.accounts.changeFactors(userId, {
    generation,
    endsSessions: false,
    change: changeOf(id, present => present.kind === PASSKEY ? { ...present, name: shown } : null)
  })
  if (renamed === null) throw noPasskey()
})

/**
 * Removes a passkey of the signed-in user, or mails the code that stands in for lost passkeys. The
 * only sign-in method stays, and the last factor where the application requires one.
 */
export const removePasskey = form({
  path: '/local/passkeys/remove',
  when: byPasskey.isOffered,
  operationId: 'authLocalPasskeyRemove',
  summary: 'Remove a passkey of the signed-in user',
  description: 'The last authentication must be less than ten minutes old, by a factor of the user. ' +
    'All other sessions of the user end. With `lost` alone: sends the code that stands in for lost passkeys.',
  user: 'signed-in',
  fields: { id, lost, mailCode },
  required: ['id'],
  answers: { 200: left, 202: accepted },
  refuses: ['reauthenticate', 'invalid_code', 'invalid_state', 'forbidden', 'not_found', 'last_link'],
  async again (auth, { request }) {
    const { user } = await current(auth, request)
    return leftOf(user.userId, await completePasskeysOf(auth, user))
  }
}, async (auth, submission) => {
  const { request, fields: { id, ...ofLost } } = submission
  const { isLost, mailCode } = lostPasskeysIn(ofLost)
  const { user, record, asksMailCode } = await requireRecentFactor(auth, request, isLost)
  const { userId } = user
  if (asksMailCode && mailCode === undefined) {
    await sendMailCode(auth, submission, user)
    return ACCEPTED
  }
  if (asksMailCode) await spendMailAttempt(auth, submission, user, mailCode)
  const others = passkeysIn(await auth.accounts.factors(userId)).filter(factor => factor.id !== id)
  if (others.length === 0 && !hasFactorThat(auth, user, 'isAlwaysDue')) await assertNotRequired(auth, record)
  // As written: of a list that lacks a passkey which another tab has just added, password managers
  // would delete it.
  let accepted: Factor[] = []
  await changeOwnFactors(auth, request, record, (factors, account) => {
    if (!passkeysIn(factors).some(factor => factor.id === id)) throw noPasskey()
    const left = withoutFactors(factors, factor => factor.id === id)
    if (!canSignIn(auth, userOf(withFactors(account, left)), account.links)) throw new AuthError('last_link')
    accepted = passkeysIn(left)
    return left
  })
  audit('factor-removed', { userId, method: 'passkey', by: 'user' }, request)
  submission.outbox.notice('factor-removed', user)
  return leftOf(userId, accepted)
})

function leftOf (userId: string, passkeys: readonly Factor[]): FormAnswer {
  return { status: 200, body: { userId: uuidToBase64url(userId), accepted: passkeys.map(({ id }) => id) } }
}

export const passkeyScript: Act = {
  when: byPasskey.isOffered,
  mount ({ scope }) {
    scope.get('/local/passkeys/script.js', {
      schema: operation({
        summary: 'The script of pages with passkeys',
        operationId: 'authLocalPasskeyScript',
        user: 'anyone',
        answers: { 200: { type: 'string', description: 'JavaScript' } }
      }),
      config: WHILE_IMPERSONATING,
      exposeHeadRoute: false,
      async onSend (request, reply) {
        const { v: version }: { v?: unknown } = Object(request.query)
        // While processes of two versions run, a page of one may ask another one for its script.
        if (version === PASSKEY_SCRIPT_VERSION) allowCaching(reply, 'public, max-age=31536000, immutable')
      }
    }, async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(PASSKEY_SCRIPT))
  }
}

/** Makes the challenge of a ceremony, and what the browser is asked with it. */
async function begun (
  auth: AuthContext, submission: FactorSubmission, ceremony: ForCeremony, isLost: boolean
): Promise<ReturnType<PasskeyCeremonies['requestOptions']>> {
  const { request } = submission
  const passkeys = needed(auth.parts.passkeys, 'passkeys').ceremonies
  if (ceremony === 'login') return passkeys.requestOptions()
  if (ceremony === 'factor') {
    const user = await provingUser(auth, request)
    return passkeys.requestOptions(passkeysIn(await auth.accounts.factors(user.userId)))
  }
  const isSilent = ceremony === 'create'
  // A sign-in that waits for a factor is finished by one that the user has chosen.
  if (isSilent && !(passkeys.relyingParty.createOnSignIn && principalOf(request) !== null)) {
    throw new AuthError('invalid_state')
  }
  const enrolling = await enrollingUser(auth, request, isLost)
  const { user, asksMailCode } = enrolling
  await refusePasskey(auth, enrolling)
  if (isSilent) assertWithoutFactor(user)
  // One that was sent stays good, so that the user can begin a second time.
  if (asksMailCode && !await isCodeMailed(request)) await sendMailCode(auth, submission, user)
  return passkeys.registrationOptions(user, passkeysIn(await auth.accounts.factors(user.userId)), isSilent)
}

/** One that a sign-in waits for is its second factor: the first one was asked. */
async function refusePasskey (auth: AuthContext, { user, waiting }: EnrollingUser): Promise<void> {
  if (waiting === null) await refuseOtherWays(auth, user)
}

async function provingUser (
  auth: Pick<AuthContext, 'accounts' | 'mayAct' | 'sealer'>, request: FastifyRequest
): Promise<User> {
  const signedIn = await currentPrincipal(auth, request)
  const { userId = null } = signedIn ?? await pendingSecondFactor(auth, request) ?? {}
  const user = userId === null ? null : await auth.accounts.findUser({ userId })
  if (user === null) throw new AuthError('invalid_state')
  return user
}

async function spendMailAttempt (
  auth: Pick<AuthContext, 'accounts' | 'mayAct' | 'sealer'>,
  submission: FactorSubmission,
  { userId, generation }: User,
  mailCode: string | undefined
): Promise<void> {
  await countAttempt(auth, submission, { userId, generation })
  await assertMailCode(auth, submission.request, userId, mailCode)
}

/** Another factor is added by a user who is there. */
function assertWithoutFactor ({ factors }: User): void {
  if (factors !== undefined) throw new AuthError('invalid_state')
}

function noPasskey (): AuthError {
  return new AuthError('not_found', { message: 'The user has no such passkey.' })
}
