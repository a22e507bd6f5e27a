/** How users authenticate by their factors. It is loaded only with an option of factors. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../accounts/account.js'
import { type AuthContext, hasPasskeys, hasPasswords, hasSecondFactor } from '../context.js'
import { current } from '../current-user/current.js'
import { AuthError, invalidRequest } from '../errors.js'
import { hashesIn } from '../factors/factor-list.js'
import { cookiesNamed } from '../session/request-cookies.js'
import { expireDuplicates } from '../session/several-cookies.js'
import { reauthenticateByCode } from '../sign-in/factor-codes.js'
import { finishByPasskey, reauthenticateByPasskey } from '../sign-in/passkeys.js'
import { reauthenticateByPassword } from '../sign-in/reauthentication.js'
import { type SecondFactorSignIn, finishByCode } from '../sign-in/second-factor.js'
import { type Form, type FormAnswer, form } from '../web/form.js'
import { password, refusePasswordWhenBusy } from '../web/password-forms.js'
import { checkbox, factorCode, filledIn, isChecked, passkeyResponse, signedIn } from '../web/schema-parts.js'

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
  async again (auth, form) {
    const { user, record: { principal, methods } } = await current(auth, form.request)
    const isRecovery = methods.some(({ method }) => method === 'recovery')
    const hashes = isRecovery ? (await auth.accounts.factors(user.userId)).flatMap(({ data }) => hashesIn(data)) : null
    return signedInBy(auth, form, { principal, user, recoveryCodesLeft: hashes && hashes.length })
  }
}, async (auth, form) => signedInBy(auth, form, await finish(auth, form)))

async function signedInBy (
  auth: AuthContext,
  { request, reply, fields: { trust } }: Form<{ trust?: unknown }>,
  { principal, user, recoveryCodesLeft: left }: SecondFactorSignIn
): Promise<FormAnswer> {
  if (isChecked(trust)) await trustBrowser(auth, request, reply, user)
  return {
    status: 200,
    body: { ...principal, ...(left !== null && { recoveryCodesLeft: left }) },
    ...(left !== null && left <= FEW_CODES && { query: { recovery_codes_left: String(left) } })
  }
}

export const reauthenticate = form({
  path: '/local/reauthenticate',
  summary: 'Authenticate the signed-in user again',
  description: 'By a password, a code or a passkey.',
  user: 'signed-in',
  fields: { password, code: factorCode, response: passkeyResponse },
  answers: { 204: { type: 'null', description: 'Done: the session has a new id' } },
  refuses: ['invalid_state', 'invalid', 'invalid_code'],
  hashes: 'itself',
  isSignInAttempt: true
}, async (auth, form) => {
  const { request, fields: { response } } = form
  const [code, password] = [filledIn(form.fields.code), filledIn(form.fields.password)]
  if (code !== undefined && hasSecondFactor(auth)) {
    await auth.limits.factor(request)
    await reauthenticateByCode(auth, form, code)
  } else if (response !== undefined && response !== '' && hasPasskeys(auth)) {
    await reauthenticateByPasskey(auth, form, response)
  } else if (password !== undefined && hasPasswords(auth)) {
    refusePasswordWhenBusy(request)
    await auth.limits.reauthenticate(request)
    await reauthenticateByPassword(auth, form, password)
  } else throw invalidRequest('The form has nothing to authenticate the user by.')
})

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
