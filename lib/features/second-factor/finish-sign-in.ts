/** How users authenticate by their factors. It is loaded only with an option of factors. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../../accounts/account.js'
import { reauthenticateByPassword } from '../../core/complete-sign-in.js'
import { type AuthContext, hasPasskeys, hasPasswords, hasSecondFactor } from '../../core/context.js'
import { current, factorsOfUser, hashesIn } from '../../core/current-user.js'
import { type Submission, type FormAnswer, form } from '../../core/form.js'
import {
  checkboxField, codeField, filled, htmlForm, html, timeIn, ways
} from '../../core/pages/elements.js'
import { page, redirected, targetsOf } from '../../core/pages/page.js'
import { withError } from '../../core/redirects.js'
import { checkbox, factorCode, filledIn, isChecked, passkeyResponse, signedIn } from '../../core/schema.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { cookiesNamed } from '../../session/cookies.js'
import { principalOf } from '../../session/record.js'
import { expireDuplicates } from '../../session/several-cookies.js'
import { passkeyForm } from '../passkeys/form.js'
import { finishByPasskey, reauthenticateByPasskey } from '../passkeys/sign-in.js'
import { password, refusePasswordWhenBusy } from '../password/forms.js'
import { enrolPage, leaveForm, setUpOf } from './authenticator.js'
import { enrollingUser } from './enrolment.js'
import { type SecondFactorSignIn, finishByCode, pendingSecondFactor, reauthenticateByCode } from './sign-in.js'

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
  isSignInAttempt: true,
  async again (auth, submission) {
    const { user, record: { principal, methods } } = await current(auth, submission.request)
    const isRecovery = methods.some(({ method }) => method === 'recovery')
    const hashes = isRecovery ? (await auth.accounts.factors(user.userId)).flatMap(({ data }) => hashesIn(data)) : null
    return signedInBy(auth, submission, { principal, user, recoveryCodesLeft: hashes && hashes.length })
  }
}, async (auth, submission) => signedInBy(auth, submission, await finish(auth, submission)))

async function signedInBy (
  auth: AuthContext,
  { request, reply, fields: { trust } }: Submission<{ trust?: unknown }>,
  { principal, user, recoveryCodesLeft: left }: SecondFactorSignIn
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
}, async (auth, submission) => {
  const { request, fields: { response } } = submission
  const [code, password] = [filledIn(submission.fields.code), filledIn(submission.fields.password)]
  if (code !== undefined && hasSecondFactor(auth)) {
    await auth.limits.factor(request)
    await reauthenticateByCode(auth, submission, code)
  } else if (response !== undefined && response !== '' && hasPasskeys(auth)) {
    await reauthenticateByPasskey(auth, submission, response)
  } else if (password !== undefined && hasPasswords(auth)) {
    refusePasswordWhenBusy(request)
    await auth.limits.reauthenticate(request)
    await reauthenticateByPassword(auth, submission, password)
  } else throw invalidRequest('The form has nothing to authenticate the user by.')
})

async function finish (
  auth: AuthContext, submission: Submission<{ code?: string, response?: unknown }>
): Promise<SecondFactorSignIn> {
  const { request, fields: { code, response } } = submission
  if (code !== undefined && hasSecondFactor(auth)) {
    await auth.limits.factor(request)
    return finishByCode(auth, submission, code)
  }
  if (response === undefined || !hasPasskeys(auth)) throw new AuthError('invalid_request')
  return finishByPasskey(auth, submission, response)
}

/** Sets the cookie by which the browser is not asked again, beside that of the session. */
async function trustBrowser (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply, user: User
): Promise<void> {
  const trustedBrowsers = auth.factors.secondFactor?.trustedBrowsers
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
  const hasCode = kinds.some(kind => kind !== 'passkey')
  const passkey = kinds.includes('passkey') ? auth.passkeyPaths : null
  const trustedDays = auth.factors.secondFactor?.trustedBrowsers?.days
  const { language, signIn, factors, confirm } = texts
  const trust = trustedDays !== undefined &&
    checkboxField(
      'trust', filled(factors.trust, { time: timeIn(language, trustedDays, 'day') }), isChecked(typed.trust))
  const [action, hidden] = [auth.formPaths.get('local/second-factor'), targetsOf(auth, 'local/second-factor', { next })]
  const fields = [codeField('code', factors.code, 'text'), trust]
  return {
    title: factors.secondTitle,
    script: passkey && passkey.script,
    content: [
      ways(
        signIn.or,
        hasCode && [html`<p>${factors.codeText}</p>`, htmlForm({ action, hidden, fields, submit: confirm.submit })],
        passkey && passkeyForm(texts, {
          ceremony: 'factor', options: passkey.options, action, hidden, fields: !hasCode && trust
        })
      ),
      leaveForm(auth, texts)
    ]
  }
})
