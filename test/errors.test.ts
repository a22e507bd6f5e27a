import t from 'tap'
import { AuthError, type AuthErrorCode, OptionsError, SignInRefused } from '../lib/errors.js'

const STATUS_BY_CODE: Record<AuthErrorCode, number> = {
  invalid: 401,
  unknown_passkey: 401,
  exists: 409,
  invalid_email: 400,
  weak_password: 400,
  breached_password: 400,
  claim_not_allowed: 403,
  invalid_request: 400,
  cross_origin: 403,
  rate_limited: 429,
  busy: 503,
  unavailable: 503,
  internal_error: 500,
  invalid_state: 400,
  access_denied: 403,
  not_allowed: 403,
  sso_required: 403,
  provider_error: 502,
  provider_unavailable: 503,
  account_exists: 409,
  already_linked: 409,
  invalid_token: 401,
  insufficient_scope: 403,
  unauthenticated: 401,
  forbidden: 403,
  reauthenticate: 403,
  second_factor_required: 401,
  second_factor_missing: 403,
  invalid_code: 401,
  too_many: 409,
  choice_required: 409,
  last_link: 409,
  user_in_use: 409,
  blocked: 403,
  unverified: 403,
  email_missing: 403,
  unsupported: 501,
  not_found: 404,
  unknown_user: 404,
  invalid_claims: 400,
  impersonating: 403,
  invalid_ttl: 400
}

t.test('each code has its status and a sentence', async t => {
  for (const code of Object.keys(STATUS_BY_CODE) as AuthErrorCode[]) {
    const error = new AuthError(code)

    t.equal(error.code, code)
    t.equal(error.statusCode, STATUS_BY_CODE[code], code)
    t.match(error.message, /^([A-Z]|ttl ).+\.$/)
  }
})

t.test('an AuthError is an Error with a name, and has no cause and no Retry-After unless given', async t => {
  const error = new AuthError('invalid')

  t.ok(error instanceof Error)
  t.equal(String(error), 'AuthError: The e-mail or the password is wrong.')
  t.equal(error.retryAfter, undefined)
  t.notOk(Object.hasOwn(error, 'cause'))
})

t.test('message, status, cause and Retry-After can be given', async t => {
  const cause = new Error('the database says no')

  const error = new AuthError('unavailable', { message: 'Come back later.', statusCode: 500, cause, retryAfter: 3 })

  t.equal(error.message, 'Come back later.')
  t.equal(error.statusCode, 500)
  t.equal(error.cause, cause)
  t.equal(error.retryAfter, 3)
  t.equal(error.code, 'unavailable')
})

t.test('a cause is kept even when it is undefined or null, and JSON does not show it', async t => {
  t.ok(Object.hasOwn(new AuthError('unavailable', { cause: undefined }), 'cause'))
  t.equal(new AuthError('unavailable', { cause: null }).cause, null)
  t.notOk(JSON.stringify(new AuthError('unavailable', { cause: 'secret words' })).includes('secret words'))
})

t.test('an OptionsError is a TypeError with a code', async t => {
  const error = new OptionsError('prefix must be a path')

  t.ok(error instanceof TypeError)
  t.notOk(error instanceof AuthError)
  t.equal(error.code, 'invalid_options')
  t.equal(String(error), 'OptionsError: prefix must be a path')
})

t.test('a SignInRefused is an AuthError with the code of the application, and a sentence', async t => {
  const refused = new SignInRefused('not_invited')

  t.ok(refused instanceof AuthError)
  t.match(refused, { name: 'SignInRefused', code: 'not_invited', statusCode: 403, message: 'This application refused the sign-in.' })
  t.equal(new SignInRefused('not_invited', 'Ask for an invitation.').message, 'Ask for an invitation.')
})

t.test('a code that does not fit into a URL is refused', async t => {
  for (const code of ['', 'not invited', 'not-invited', 'Not_invited', 'a&b=c', 'a\n', '<b>', 'a'.repeat(51), 5, null, undefined]) {
    t.throws(() => new SignInRefused(code as string), { name: 'OptionsError', message: /^the code of a SignInRefused must be/ })
  }
})
