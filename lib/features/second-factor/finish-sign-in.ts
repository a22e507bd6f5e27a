/** How users authenticate by their factors. It is loaded only with an option of factors. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../../accounts/account.js'
import { reauthenticateBy } from '../../core/complete-sign-in.js'
import type { AuthContext, Method, Owner, ProofFields, ProofSubmission, Proven } from '../../core/context.js'
import { current } from '../../core/current-user.js'
import { type FormAnswer, form } from '../../core/form.js'
import { checkboxField, filled, timeIn, ways } from '../../core/pages/elements.js'
import { page, redirected, targetsOf } from '../../core/pages/page.js'
import { withError } from '../../core/redirects.js'
import { checkbox, isChecked, signedIn } from '../../core/schema.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { cookiesNamed } from '../../session/cookies.js'
import { type Principal, principalOf } from '../../session/record.js'
import { expireDuplicates } from '../../session/several-cookies.js'
import { password } from '../password/forms.js'
import { enrolPage, leaveForm, setUpOf } from './authenticator.js'
import { enrollingUser } from './enrolment.js'
import { attemptSignIn, continueSignIn, pendingSecondFactor, takePendingSecondFactor } from './sign-in.js'
import { askBy, factorsOfUser } from '../../core/methods.js'
import type { Submission } from '../../core/submission.js'
import { hashesIn } from '../../accounts/factors.js'
import { hasSecondFactor } from './second-factor.js'
import { RECOVERY } from './totp.js'
import { factorCode, passkeyResponse } from './schema.js'

/** With so many recovery codes left, browsers are told how many. */
const FEW_CODES = 2

const withCodesLeft = {
  ...signedIn,
  properties: {
    ...signedIn.properties,
    recoveryCodesLeft: { type: 'integer', description: 'After a recovery code: how many the user has left' }
  }
} as const

export const finishSignIn = form({
  path: '/local/second-factor',
  // A sign-in that waits is sealed.
  when: ({ sealer }) => sealer !== null,
  summary: 'Finish a sign-in by a second factor',
  description: 'The sign-in waits in this session for ten minutes, and takes five codes.',
  user: 'anyone',
  fields: {
    code: factorCode,
    response: passkeyResponse,
    trust: { ...checkbox, description: 'A checkbox: this browser is not asked again for some days' }
  },
  answers: { 200: withCodesLeft },
  refuses: [
    'invalid_code', 'invalid', 'invalid_state', 'blocked', 'sso_required', 'unauthenticated', 'rate_limited', 'busy'
  ],
  isSignInAttempt: true,
  async again (auth, submission) {
    const { user, record: { principal, methods } } = await current(auth, submission.request)
    const isRecovery = methods.some(({ method }) => method === RECOVERY)
    const hashes = isRecovery ? (await auth.accounts.factors(user.userId)).flatMap(({ data }) => hashesIn(data)) : null
    return signedInBy(auth, submission, { principal, user, codesLeft: hashes && hashes.length })
  }
}, async (auth, submission) => signedInBy(auth, submission, await finish(auth, submission)))

async function signedInBy (
  auth: Pick<AuthContext, 'parts'>,
  { request, reply, fields: { trust } }: Submission<{ trust?: unknown }>,
  { principal, user, codesLeft: left }: SecondFactorSignIn
): Promise<FormAnswer> {
  if (isChecked(trust)) await trustBrowser(auth, request, reply, user)
  return {
    status: 200,
    body: { ...principal, ...(left !== null && { recoveryCodesLeft: left }) },
    ...(left !== null && left <= FEW_CODES && { query: { recovery_codes_left: String(left) } })
  }
}

export const reauthenticateByFactor = form({
  path: '/local/reauthenticate',
  summary: 'Authenticate the signed-in user again',
  description: 'By a password, a code or a passkey.',
  user: 'signed-in',
  fields: { password, code: factorCode, response: passkeyResponse },
  answers: { 204: { type: 'null', description: 'Done: the session has a new id' } },
  refuses: ['invalid_state', 'invalid', 'invalid_code'],
  hashes: 'itself',
  isSignInAttempt: true
}, async (auth, submission) => reauthenticateBy(auth, submission.request, async owner =>
  verifyBy(auth, auth.offered, submission, owner)))

interface SecondFactorSignIn {
  readonly principal: Principal
  readonly user: User
  readonly codesLeft: number | null
}

/**
 * Finishes a sign-in that waits. What has proven the user is spent, also when another request has
 * finished the sign-in meanwhile.
 *
 * @throws AuthError `invalid_state` when no sign-in waits in this session, and after five attempts
 */
async function finish (
  auth: AuthContext, submission: Submission<ProofFields & { next?: string }>
): Promise<SecondFactorSignIn> {
  const { request, fields } = submission
  if (fields.code === '' && hasSecondFactor(auth)) throw new AuthError('invalid_code')
  const factors = auth.offered.filter(({ factor }) => factor !== undefined)
  const { user, proof, codesLeft } = await verifyBy(auth, factors, submission, async () => {
    const waiting = await attemptSignIn(auth, request)
    if (waiting?.needs !== 'factor') throw new AuthError('invalid_state')
    return waiting
  })
  if (user === null) throw new AuthError('invalid_state')
  const taken = await takePendingSecondFactor(auth, request, user.userId)
  const principal = await continueSignIn(auth, submission, taken, { user, proof })
  return { principal, user, codesLeft }
}

/** Authenticates a user by the first method, factors before others, whose fields a form has. */
async function verifyBy (
  auth: AuthContext, methods: readonly Method[], submission: ProofSubmission, owner: Owner
): Promise<Proven> {
  const isFirst = ({ factor }: Method): boolean => factor === undefined
  for (const { verify } of methods.toSorted((one, other) => Number(isFirst(one)) - Number(isFirst(other)))) {
    const verified = verify?.(auth, submission, owner) ?? null
    if (verified !== null) return verified
  }
  throw invalidRequest('The form has nothing to authenticate the user by.')
}

/** Sets the cookie by which the browser is not asked again, beside that of the session. */
async function trustBrowser (
  auth: Pick<AuthContext, 'parts'>, request: FastifyRequest, reply: FastifyReply, user: User
): Promise<void> {
  const trustedBrowsers = auth.parts.secondFactor?.trustedBrowsers
  if (trustedBrowsers == null) return
  const { cookieName } = trustedBrowsers
  const { value, maxAge, replacesSeveral } = await trustedBrowsers.trust(cookiesNamed(request, cookieName), user)
  const { path = '/', domain, secure } = request.session.cookie
  if (replacesSeveral) expireDuplicates(reply, cookieName, { path, domain })
  reply.setCookie(cookieName, value, {
    path, httpOnly: true, sameSite: 'lax', secure: secure === true, maxAge, ...(domain && { domain })
  })
}

/** The page on which a user finishes a sign-in that waits, or sets up the factor that it needs. */
export const secondFactorPage = page({ path: '/local/second-factor', when: finishSignIn.when }, async (auth, view) => {
  const { request, reply, texts, next, typed } = view
  const { redirects } = auth
  const waiting = await pendingSecondFactor(auth, request)
  if (waiting === null) {
    // Another tab has finished the sign-in, or it has expired.
    const login = principalOf(request) === null ? redirects.loginWith(request, next) : null
    return redirected(reply, login === null ? redirects.afterSuccess(request, next) : withError(login, 'invalid_state'))
  }
  const { needs, userId } = waiting
  if (needs === 'enrolment') {
    return enrolPage(auth, view, setUpOf(auth, view, await enrollingUser(auth, request, false)))
  }
  const kinds = await factorsOfUser(auth, userId)
  const trustedDays = auth.parts.secondFactor?.trustedBrowsers?.days
  const { language, signIn, factors } = texts
  const field = trustedDays !== undefined && checkboxField(
    'trust', filled(factors.trust, { time: timeIn(language, trustedDays, 'day') }), isChecked(typed.trust))
  const hidden = targetsOf(auth, 'local/second-factor', { next })
  const methods = auth.offered.filter(({ name }) => kinds.some(kind => kind === name))
  const asked = await askBy(auth, methods, view, {
    action: auth.formPaths.get('local/second-factor'), hidden, email: null, names: kinds, field
  })
  return {
    title: factors.secondTitle,
    script: asked.script,
    content: [ways(signIn.or, ...asked.forms, asked.buttons), leaveForm(auth, texts)]
  }
})
