/** What users do with second factors. It is loaded only with an option of factors. */
import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Factor, FactorKind, User } from '../accounts/account.js'
import { withoutFactors } from '../accounts/factors.js'
import { audit } from '../audit.js'
import { type AuthContext, hasFactors, hasLocal, hasPasskeys, hasSecondFactor, needed } from '../context.js'
import { recent } from '../current-user/recent.js'
import { AuthError } from '../errors.js'
import { newRecoveryCodes, recoveryHash } from '../factors/codes.js'
import { newTotpSecret, qrSvg, totpUri } from '../factors/totp.js'
import { recoveryCodesPage } from '../pages/factor-pages.js'
import { cookiesNamed } from '../session/cookie.js'
import { attemptEntry, findEntry, putEntry, takeEntry } from '../session/pending-steps.js'
import { expireDuplicates } from '../session/several-cookies.js'
import {
  countAttempt, openSecret, readCode, reauthenticateByCode, stepOf
} from '../sign-in/factor-codes.js'
import { finishByPasskey, reauthenticateByPasskey } from '../sign-in/passkeys.js'
import { reauthenticateByPassword } from '../sign-in/reauthentication.js'
import { type SecondFactorSignIn, finishByCode } from '../sign-in/second-factor.js'
import { ENROLMENT } from '../store/one-time-entries.js'
import { pathOf } from '../web/act.js'
import { type Form, type FormAnswer, form } from '../web/form.js'
import { withQuery } from '../web/page.js'
import { password, refusePasswordWhenBusy } from '../web/password-forms.js'
import {
  checkbox, factorCode, filledIn, isChecked, lost, lostPasskeysIn, mailCode, passkeyResponse, signedIn
} from '../web/schema-parts.js'
import {
  type EnrollingUser, MAX_ATTEMPTS, addFactor, assertMailCode, assertNotRequired, changeFactors, enrollingUser,
  sendMailCode
} from './enrolment.js'

/** What an authenticator app is given. */
interface TotpEnrolment {
  /** The `otpauth:` URI. */
  uri: string
  /** The secret in it, in base32. */
  secret: string
  /** The URI as a QR code; null without the package uqr, and for a URI that is too long. */
  svg: string | null
}

/** An authenticator app before its first code. The secret is sealed for the id of the factor. */
interface PendingTotp {
  readonly userId: string
  readonly generation: number
  readonly id: string
  readonly secret: string
}

/** With so many recovery codes left, browsers are told how many. */
const FEW_CODES = 2

const withCodesLeft = {
  ...signedIn,
  properties: {
    ...signedIn.properties,
    recoveryCodesLeft: { type: 'integer', description: 'After a recovery code: how many the user has left' }
  }
} as const

const enrolmentBody = {
  type: 'object',
  description: 'What the authenticator app is given',
  required: ['uri', 'secret', 'svg'],
  properties: {
    uri: { type: 'string', description: 'An otpauth: URI' },
    secret: { type: 'string', description: 'Base32' },
    svg: { type: ['string', 'null'], description: 'The URI as a QR code; null without the package uqr, or if too long' }
  }
} as const

const recoveryCodes = {
  type: 'object',
  description: 'The recovery codes: no other answer contains them',
  required: ['recoveryCodes'],
  properties: { recoveryCodes: { type: 'array', items: { type: 'string' } } }
} as const

/** Finishes a sign-in that waits, by a code or a passkey. */
export const finishSignIn = form({
  path: '/local/second-factor',
  // A sign-in that waits is sealed.
  when: ({ factors: { sealer } }) => sealer !== null,
  summary: 'Finish a sign-in by a second factor',
  description: 'The sign-in waits in this session for ten minutes, and takes five codes.',
  user: 'anyone',
  fields: {
    code: factorCode,
    response: passkeyResponse,
    trust: { ...checkbox, description: 'A checkbox: this browser is not asked again for some days' }
  },
  answers: { 200: withCodesLeft },
  refuses: ['invalid_code', 'invalid', 'invalid_state', 'blocked', 'unauthenticated', 'rate_limited', 'busy'],
  isSignInAttempt: true
}, async (auth, form) => {
  const { request, reply, fields: { trust } } = form
  const { principal, user, recoveryCodesLeft: left } = await finish(auth, form)
  if (isChecked(trust)) await trustBrowser(auth, request, reply, user)
  return {
    status: 200,
    body: { ...principal, ...(left !== null && { recoveryCodesLeft: left }) },
    ...(left !== null && left <= FEW_CODES && { query: { recovery_codes_left: String(left) } })
  }
})

/**
 * Begins to set up an authenticator app. Nothing of the account changes until a code confirms it.
 */
export const beginTotp = form({
  path: '/local/totp/enroll',
  when: hasSecondFactor,
  summary: 'Begin to set up an authenticator app',
  description: 'The last authentication must be less than ten minutes old, by a factor of the user if they have ' +
    'one. Nothing changes until a code confirms it.',
  user: 'signed-in-or-not',
  fields: { lost },
  answers: { 200: enrolmentBody },
  refuses: ['unauthenticated', 'reauthenticate', 'invalid_state', 'blocked'],
  limits: ['factor']
}, async (auth, form) => {
  const { request, fields: { next = null, lost } } = form
  const isLost = isChecked(lost)
  const { user, asksMailCode } = await enrollingUser(auth, request, isLost)
  const { userId, generation } = user
  const [id, secret] = [randomUUID(), newTotpSecret()]
  const sealed = await needed(auth.factors.secondFactor, 'secondFactor').sealer.seal(secret, id)
  const pending: PendingTotp = { userId, generation, id, secret: sealed }
  await putEntry(request, ENROLMENT, pending)
  if (asksMailCode) await sendMailCode(auth, form, user)
  const page = withQuery(pathOf(auth, 'local/totp'), { next, lost: isLost ? 'true' : null })
  return { status: 200, body: await totpEnrolment(auth, user, secret), page }
})

/**
 * Confirms an authenticator app by its first code, which is spent. All other sessions of the user
 * end; a sign-in that waits for it is completed.
 */
export const confirmTotp = form({
  path: '/local/totp/confirm',
  when: hasSecondFactor,
  summary: 'Confirm an authenticator app by its first code',
  description: 'All other sessions of the user end. A sign-in that waits for it is finished.',
  user: 'signed-in-or-not',
  fields: { code: factorCode, lost, mailCode },
  required: ['code'],
  answers: { 200: recoveryCodes },
  refuses: ['unauthenticated', 'reauthenticate', 'invalid_code', 'invalid_state', 'blocked'],
  limits: ['factor'],
  isSignInAttempt: true
}, async (auth, form) => {
  const { request, fields: { code, ...ofLost } } = form
  const { isLost, mailCode } = lostPasskeysIn(ofLost)
  const typed = readCode(code)
  const enrolling = await enrollingUser(auth, request, isLost)
  const { user: { userId, generation }, asksMailCode } = enrolling
  const pending = await attemptEntry<PendingTotp>(request, ENROLMENT, MAX_ATTEMPTS)
  if (pending?.userId !== userId || pending.generation !== generation) throw new AuthError('invalid_state')
  await countAttempt(auth, form, { userId, generation })
  if (asksMailCode) await assertMailCode(auth, request, userId, mailCode)
  const { id, secret } = pending
  const { text } = await openSecret(auth, request, pending)
  const step = typed.kind === 'totp' ? stepOf(auth, text, typed.code) : null
  if (step === null) throw new AuthError('invalid_code')
  if (await takeEntry(request, ENROLMENT) === null) throw new AuthError('invalid_state')

  const codes = newRecoveryCodes()
  const totp = newFactor('totp', { id, secret, counter: step, usedAt: Date.now() })
  await addFactor(auth, form, enrolling, {
    proof: { method: 'totp', at: Date.now() },
    endsSessions: true,
    change: factors => [...factors.filter(({ kind }) => kind === 'passkey'), totp, recoveryFactor(codes)]
  })
  return shown(auth, form, codes)
})

/**
 * Removes the authenticator app of the signed-in user, and the recovery codes with the last factor.
 */
export const removeTotp = form({
  path: '/local/totp/remove',
  when: hasSecondFactor,
  summary: 'Remove the authenticator app of the signed-in user',
  description: 'The last second factor must be less than ten minutes old. All other sessions of the user end.',
  user: 'signed-in',
  fields: {},
  refuses: ['reauthenticate', 'invalid_state', 'forbidden', 'not_found']
}, async (auth, { request, outbox }) => {
  const { user, record } = await recent(auth, request, { factor: true })
  const { factors: kinds = [] } = user
  if (!kinds.includes('totp')) {
    throw new AuthError('not_found', { message: 'This account has no authenticator app.' })
  }
  if (!kinds.includes('passkey')) await assertNotRequired(auth, record)
  await changeFactors(auth, request, record, factors => withoutFactors(factors, ({ kind }) => kind === 'totp'))
  audit('factor-removed', { userId: user.userId, method: 'totp', by: 'user' }, request)
  outbox.notice('factor-removed', user)
})

/** Replaces the recovery codes of the signed-in user. */
export const renewRecoveryCodes = form({
  path: '/local/recovery-codes',
  when: hasSecondFactor,
  summary: 'Replace the recovery codes of the signed-in user',
  description: 'The last second factor must be less than ten minutes old. All other sessions of the user end.',
  user: 'signed-in',
  fields: {},
  answers: { 200: recoveryCodes },
  refuses: ['reauthenticate', 'invalid_state', 'second_factor_missing']
}, async (auth, form) => {
  const { request } = form
  const { user, record } = await recent(auth, request, { factor: true })
  if (user.factors === undefined) throw new AuthError('second_factor_missing')
  const codes = newRecoveryCodes()
  await changeFactors(auth, request, record, factors => [
    ...factors.filter(({ kind }) => kind !== 'recovery'), recoveryFactor(codes)
  ])
  audit('recovery-codes', { userId: user.userId }, request)
  form.outbox.notice('recovery-codes-renewed', user)
  return shown(auth, form, codes)
})

/** Authenticates the signed-in user again, where they may have factors. */
export const reauthenticate = form({
  path: '/local/reauthenticate',
  when: hasFactors,
  summary: 'Authenticate the signed-in user again',
  description: 'By a password, a code or a passkey.',
  user: 'signed-in',
  fields: { password, code: factorCode, response: passkeyResponse },
  answers: { 204: { type: 'null', description: 'Done: the session has a new id' } },
  refuses: ['invalid_state', 'invalid', 'invalid_code', 'rate_limited', 'busy'],
  isSignInAttempt: true
}, async (auth, form) => {
  const { request, fields: { response } } = form
  const [code, password] = [filledIn(form.fields.code), filledIn(form.fields.password)]
  if (code !== undefined && hasSecondFactor(auth)) {
    await auth.limits.factor(request)
    await reauthenticateByCode(auth, form, code)
  } else if (response !== undefined && response !== '' && hasPasskeys(auth)) {
    await reauthenticateByPasskey(auth, form, response)
  } else if (password !== undefined && hasLocal(auth)) {
    refusePasswordWhenBusy(request)
    await auth.limits.reauthenticate(request)
    await reauthenticateByPassword(auth, form, password)
  } else throw new AuthError('invalid_request', { message: 'The form has nothing to authenticate the user by.' })
})

/** Authenticates the user of a sign-in that waits, by what the form has. */
async function finish (
  auth: AuthContext, form: Form<{ code?: string, response?: unknown }>
): Promise<SecondFactorSignIn> {
  const { request, fields: { code, response } } = form
  if (code !== undefined && hasSecondFactor(auth)) {
    await auth.limits.factor(request)
    return finishByCode(auth, form, code)
  }
  if (response === undefined || !hasPasskeys(auth)) throw new AuthError('invalid_request')
  return finishByPasskey(auth, form, response)
}

/** Sets the cookie by which the browser is not asked again, beside that of the session. */
async function trustBrowser (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply, user: User
): Promise<void> {
  const { trustedBrowsers } = auth.factors.secondFactor ?? {}
  if (trustedBrowsers === undefined) return
  const { cookieName } = trustedBrowsers
  const trusted = await trustedBrowsers.trust(cookiesNamed(request, cookieName), user)
  if (trusted === null) return
  const { value, maxAge, replacesSeveral } = trusted
  const { path = '/', domain, secure } = request.session.cookie
  if (replacesSeveral) expireDuplicates(reply, cookieName, { path, domain })
  reply.setCookie(cookieName, value, {
    path, httpOnly: true, sameSite: 'lax', secure: secure === true, maxAge, ...(domain && { domain })
  })
}

/** Returns what waits to be confirmed in the session of a request; null without it. */
export async function pendingTotp (
  auth: AuthContext, request: FastifyRequest, isLost: boolean
): Promise<{ enrolling: EnrollingUser, enrolment: TotpEnrolment | null }> {
  const enrolling = await enrollingUser(auth, request, isLost)
  const { user } = enrolling
  const pending = await findEntry<PendingTotp>(request, ENROLMENT)
  if (pending?.userId !== user.userId) return { enrolling, enrolment: null }
  const { text } = await openSecret(auth, request, pending)
  return { enrolling, enrolment: await totpEnrolment(auth, user, text) }
}

async function totpEnrolment (
  auth: AuthContext, { email, name, userId }: User, secret: string
): Promise<TotpEnrolment> {
  const { issuer } = needed(auth.factors.secondFactor, 'secondFactor')
  const uri = totpUri({ issuer, account: email ?? name ?? userId, secret })
  return { uri, secret, svg: await qrSvg(uri) }
}

/** Answers with recovery codes: browsers get a page that shows them. */
function shown (
  auth: AuthContext, { request, reply, fields: { next } }: Form<{ next?: string }>, recoveryCodes: readonly string[]
): FormAnswer {
  const layout = needed(auth.layout, 'pages')
  return {
    status: 200,
    body: { recoveryCodes },
    show: () => layout.send(reply, recoveryCodesPage(layout.textsFor(request), {
      codes: recoveryCodes, next: auth.pages.afterSuccess(request, next)
    }))
  }
}

function newFactor (kind: FactorKind, content: Partial<Factor>): Factor {
  const id = randomUUID()
  return { id, kind, name: null, secret: null, data: {}, counter: 0, createdAt: Date.now(), usedAt: null, ...content }
}

function recoveryFactor (codes: readonly string[]): Factor {
  return newFactor('recovery', { data: { hashes: codes.map(recoveryHash) } })
}
