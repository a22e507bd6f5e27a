import { inspect } from 'node:util'
import t from 'tap'
import { AuthError } from '../../errors.js'
import { LocalIdentityProvider, type LocalIdentityProviderOptions } from './local-identity-provider.js'
import type { PasswordCheck } from '../password/checks.js'
import { setEnv } from '../../../test/helpers/environment.js'

const SECRET = 'the local secret of these tests, 32+'
const CHEAP = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const CONTEXT = { email: 'ada@example.com' }

const OF_SETTING = 'a-setting-with-more-than-32-characters'

/** As a caller without types calls it. */
const local = (options: object = {}) => new LocalIdentityProvider({ secret: SECRET, argon2: CHEAP, ...options })

t.test('options that are not given have a default', async t => {
  const provider = new LocalIdentityProvider({ secret: SECRET })

  t.equal(provider.issuer, 'svc-auth-local')
  t.equal(provider.ttl, 900)
  t.strictSame(provider.registration, { roles: [], emailVerified: false, passkey: false, verify: 'later' })
  t.match(await provider.hashPassword('correct horse', CONTEXT), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
})

t.test('tokens are of the issuer and live as long as was configured, unless said otherwise', async t => {
  const provider = local({ issuer: 'https://app.example', ttl: 60 })

  const usual = await provider.verifyIdToken(await provider.issueIdToken('ada'))
  const special = await provider.verifyIdToken(await provider.issueIdToken('ada', { role: 'admin' }, 5))

  t.match(usual, { iss: 'https://app.example', sub: 'ada' })
  t.equal(usual.exp - usual.iat, 60)
  t.match(special, { role: 'admin' })
  t.equal(special.exp - special.iat, 5)
})

t.test('attack 51: a token with a purpose or an audience is verified for these only', async t => {
  const provider = local()
  const use = { purpose: 'invitation', audience: 'reports' }

  const token = await provider.issueIdToken('ada', {}, 900, use)

  t.match(await provider.verifyIdToken(token, use), { sub: 'ada', purpose: 'invitation', aud: 'reports' })
  await t.rejects(provider.verifyIdToken(token), { code: 'invalid_token' })
  await t.rejects(provider.verifyIdToken(token, { purpose: 'invitation' }), { code: 'invalid_token' })
  await t.rejects(provider.verifyIdToken(await provider.issueIdToken('ada'), use), { code: 'invalid_token' })
})

t.test('attack 47: the secret comes from LOCAL_IDP_SECRET unless it is given', async t => {
  setEnv(t, { LOCAL_IDP_SECRET: OF_SETTING })
  const ofSetting = new LocalIdentityProvider()
  const ofOption = new LocalIdentityProvider({ secret: SECRET })
  setEnv(t, { LOCAL_IDP_SECRET: undefined })
  const same = new LocalIdentityProvider({ secret: OF_SETTING })

  const token = await ofSetting.issueIdToken('ada')

  t.match(await same.verifyIdToken(token), { sub: 'ada' })
  await t.rejects(ofOption.verifyIdToken(token), { code: 'invalid_token' })
})

t.test('attack 47: of a list of secrets the first signs and all verify', async t => {
  const before = local({ secret: 'the secret of last year, 32 and more' })
  const after = local({ secret: [SECRET, 'the secret of last year, 32 and more'] })

  t.match(await after.verifyIdToken(await before.issueIdToken('ada')), { sub: 'ada' })
  t.match(await local().verifyIdToken(await after.issueIdToken('ada')), { sub: 'ada' })
  await t.rejects(before.verifyIdToken(await after.issueIdToken('ada')), { code: 'invalid_token' })
})

t.test('attack 47: without a secret, and with a short one, there is no provider; option and setting are named, the secret is not', async t => {
  const short = 'thirty-one characters, one less'
  t.equal(short.length, 31)

  for (const options of [
    {}, { secret: undefined }, { secret: '' }, { secret: short }, { secret: [] }, { secret: [SECRET, short] },
    { secret: 1 }, { secret: Buffer.from(SECRET) }
  ] as LocalIdentityProviderOptions[]) {
    const refused = t.throws(() => new LocalIdentityProvider(options), {
      name: 'OptionsError',
      message: /^LocalIdentityProvider: secret must be at least 32 characters.*; set LOCAL_IDP_SECRET/
    })
    t.notOk(inspect(refused).includes(short) || inspect(refused).includes(SECRET))
  }
  setEnv(t, { LOCAL_IDP_SECRET: short.replaceAll(' ', '-') })
  const refused = t.throws(() => new LocalIdentityProvider(), { name: 'OptionsError', message: /^LocalIdentityProvider: secret must be/ })
  t.notMatch(inspect(refused), /thirty/)
})

t.test('attack 60: neither inspect nor JSON shows the secret', async t => {
  const secrets = [SECRET, 'the secret of last year, 32 and more']
  const provider = local({ secret: secrets, issuer: 'https://app.example' })

  const shown = [
    inspect(provider),
    inspect({ provider }, { depth: null, showHidden: true }),
    inspect(provider, { showHidden: true, customInspect: false, depth: null, getters: true }),
    JSON.stringify({ provider }),
    String(provider),
    Object.values(provider).map(String).join()
  ]

  for (const text of shown) t.notOk(secrets.some(secret => text.includes(secret)), text)
  t.equal(inspect(provider), "LocalIdentityProvider { issuer: 'https://app.example', ttl: 900 }")
  t.equal(JSON.stringify(provider), '{"issuer":"https://app.example","ttl":900}')
})

const MISTAKES: Array<[options: object, message: RegExp]> = [
  [{ secrets: [SECRET] }, /^LocalIdentityProvider has no option "secrets"; it is called secret$/],
  [
    { role: 'admin' },
    new RegExp('^LocalIdentityProvider has no option "role"; expected one of ' +
      'secret, signingKey, issuer, ttl, argon2, password, signInByMail, registration, sendMail, mails, pages, accountRoutes$')
  ],
  ...['', null, 1, {}, ['svc-auth-local']].map((issuer): [object, RegExp] => [{ issuer }, /^LocalIdentityProvider: issuer must be a non-empty string$/]),
  ...[0, -1, 0.5, 1.5, 2_592_001, NaN, Infinity, '900', null, 900n].map((ttl): [object, RegExp] => [
    { ttl },
    /^LocalIdentityProvider: ttl must be a whole number of seconds from 1 to 2592000/
  ]),
  ...[null, 1, 'check'].map((password): [object, RegExp] => [
    { password },
    /^LocalIdentityProvider: password must be true, false or an object \{ check, minLength \}$/
  ]),
  ...[true, 'long', null, {}].map((check): [object, RegExp] => [
    { password: { check } },
    /^LocalIdentityProvider: password\.check must be a function \(password, \{ email \}\) => boolean or a sentence$/
  ]),
  [{ password: { chek: () => false } }, /^LocalIdentityProvider: password has no option "chek"; expected one of check, minLength$/],
  ...[7, 0, -8, 129, 8.5, NaN, Infinity, '12', null, true].map((minLength): [object, RegExp] => [
    { password: { minLength } },
    /^LocalIdentityProvider: password\.minLength must be a whole number of characters from 8 to 128$/
  ]),
  ...[null, 'open', 1, []].map((registration): [object, RegExp] => [
    { registration },
    /^LocalIdentityProvider: registration must be true, false or an object \{ roles, emailVerified, verify, passkey \}$/
  ]),
  ...['role', 'Roles'].map((name): [object, RegExp] => [
    { registration: { [name]: ['admin'] } },
    new RegExp(`^LocalIdentityProvider: registration has no option "${name}"; it is called roles$`)
  ]),
  [{ registration: { unknown: true } }, /^LocalIdentityProvider: registration has no option "unknown"; expected one of roles, emailVerified, verify, passkey$/],
  ...['admin', null, [''], [1], ['member', null], new Set(['member'])].map((roles): [object, RegExp] => [
    { registration: { roles } },
    /^LocalIdentityProvider: registration\.roles must be a list of roles, such as \['member'\]$/
  ]),
  ...['true', 1, null].map((emailVerified): [object, RegExp] => [
    { registration: { emailVerified } },
    /^LocalIdentityProvider: registration\.emailVerified must be true or false$/
  ]),
  ...['never', true, null].map((verify): [object, RegExp] => [
    { registration: { verify } },
    /^LocalIdentityProvider: registration\.verify must be 'later', 'required' or 'first'$/
  ]),
  ...['required', 'first'].map((verify): [object, RegExp] => [
    { registration: { verify } },
    new RegExp(`^LocalIdentityProvider: registration.verify: '${verify}' needs sendMail, which sends the mails$`)
  ]),
  ...[null, true, 'smtp://mail.example', {}].map((sendMail): [object, RegExp] => [
    { sendMail },
    /^LocalIdentityProvider: sendMail must be a function \(\{ kind, to, userId, name, url, token, code, expiresIn, about \}\) => Promise<void>$/
  ]),
  [{ mails: {} }, /^LocalIdentityProvider: mails needs sendMail, which sends the mails$/],
  [{ pages: {} }, /^LocalIdentityProvider: pages needs sendMail, which sends the mails$/],
  ...[null, 'all', []].map((mails): [object, RegExp] => [
    { sendMail: () => {}, mails },
    /^LocalIdentityProvider: mails must be an object \{ unknownAddress, notices, limits \}$/
  ]),
  [{ sendMail: () => {}, mails: { notice: false } }, /^LocalIdentityProvider: mails has no option "notice"; it is called notices$/],
  [{ sendMail: () => {}, mails: { notices: 1 } }, /^LocalIdentityProvider: mails\.notices must be true or false$/],
  ...[null, '/reset', []].map((pages): [object, RegExp] => [
    { sendMail: () => {}, pages },
    /^LocalIdentityProvider: pages must be an object \{ register, resetPassword, verifyEmail, changeEmail, mailLogin \}$/
  ]),
  [{ sendMail: () => {}, pages: { reset: '/reset' } }, /^LocalIdentityProvider: pages has no option "reset"; expected one of register, /],
  [
    { sendMail: () => {}, pages: { resetPassword: 1 } },
    /^LocalIdentityProvider: pages\.resetPassword must be a path of this application, such as \/new-password$/
  ],
  ...[null, 'all'].map((accountRoutes): [object, RegExp] => [
    { accountRoutes },
    /^LocalIdentityProvider: accountRoutes must be an object \{ changePassword, setPassword, changeEmail, deleteAccount, forgotPassword, sessionsEnd \}$/
  ]),
  [{ accountRoutes: { 'delete-account': false } }, /^LocalIdentityProvider: accountRoutes has no option "delete-account"; expected one of changePassword, /],
  [{ accountRoutes: { deleteAccount: 'no' } }, /^LocalIdentityProvider: accountRoutes\.deleteAccount must be true or false$/],
  ...['fast', 5, true, [], null].map((argon2): [object, RegExp] => [
    { argon2 },
    /^LocalIdentityProvider: argon2 must be an object \{ memoryCost, timeCost, parallelism \}$/
  ]),
  [{ argon2: { memory: 8 } }, /^LocalIdentityProvider: argon2 has no option "memory"; expected one of memoryCost, timeCost, parallelism$/],
  ...[7, 1_048_577, 0, -8, 8.5, '8', NaN, null].map((memoryCost): [object, RegExp] => [
    { argon2: { memoryCost } },
    /^LocalIdentityProvider: argon2\.memoryCost must be a whole number of KiB from 8 to 1048576$/
  ]),
  ...[[15, 2], [127, 16]].map(([memoryCost, parallelism]): [object, RegExp] => [
    { argon2: { memoryCost, parallelism } },
    /^LocalIdentityProvider: argon2\.memoryCost must be 8 KiB or more for each lane of parallelism$/
  ]),
  ...[0, 65, 1.5, '2', Infinity].map((timeCost): [object, RegExp] => [
    { argon2: { timeCost } },
    /^LocalIdentityProvider: argon2\.timeCost must be a whole number from 1 to 64$/
  ]),
  ...[0, 17, 1.5, true].map((parallelism): [object, RegExp] => [
    { argon2: { parallelism } },
    /^LocalIdentityProvider: argon2\.parallelism must be a whole number from 1 to 16$/
  ])
]

for (const [options, message] of MISTAKES) {
  t.test(`the mistake ${inspect(options, { breakLength: Infinity })} is refused with a sentence that names the option`, async t => {
    t.throws(() => local(options), { name: 'OptionsError', code: 'invalid_options', message })
  })
}

t.test('options that are not an object are refused', async t => {
  for (const options of [SECRET, null] as unknown[]) t.throws(() => new LocalIdentityProvider(options as object), { name: 'OptionsError' })
})

t.test('lifetimes from a second to thirty days can be configured', async t => {
  for (const ttl of [1, 2_592_000]) t.equal(local({ ttl }).ttl, ttl)
})

t.test('the cost of hashes can be configured from the lowest to the highest', async t => {
  const costs = [
    { memoryCost: 8, timeCost: 1, parallelism: 1 },
    { memoryCost: 128, timeCost: 64, parallelism: 16 },
    { memoryCost: 16, timeCost: 1, parallelism: 2 }
  ]

  for (const argon2 of costs) {
    t.match(
      await local({ argon2 }).hashPassword('correct horse', CONTEXT),
      new RegExp(`m=${argon2.memoryCost},t=${argon2.timeCost},p=${argon2.parallelism}\\$`)
    )
  }
  t.doesNotThrow(() => local({ argon2: { memoryCost: 1_048_576 } }))
  t.match(await local({ argon2: { timeCost: 3 } }).hashPassword('correct horse', CONTEXT), /m=19456,t=3,p=1\$/, 'the rest is the default')
})

t.test('registration says what the form may ask for', async t => {
  const standard = { roles: [], emailVerified: false, passkey: false, verify: 'later' }
  t.equal(local({ registration: false }).registration, null)
  for (const registration of [{}, true]) t.strictSame(local({ registration }).registration, standard)
  const roles = ['member', 'editor']
  t.strictSame(local({ registration: { roles } }).registration, { ...standard, roles })
  t.strictSame(local({ registration: { emailVerified: true } }).registration, { ...standard, emailVerified: true })
})

t.test('attack 45: a list of roles that is changed afterwards hands out nothing more', async t => {
  const roles = ['member']
  const provider = local({ registration: { roles } })

  roles.push('admin')

  t.strictSame(provider.registration?.roles, ['member'])
})

const ALLOWING: PasswordCheck[] = [() => true, async () => true]
const REFUSING: Array<[check: PasswordCheck, message: string]> = [
  [() => false, 'The password must be 8 to 1024 bytes long; choose another one.'],
  [async () => false, 'The password must be 8 to 1024 bytes long; choose another one.'],
  [() => 'This password was in a leak; choose another one.', 'This password was in a leak; choose another one.'],
  [async () => 'This password was in a leak; choose another one.', 'This password was in a leak; choose another one.']
]

t.test('a password is hashed when the application has no rule, or its rule has nothing against it', async t => {
  for (const password of [undefined, {}, { check: undefined }, ...ALLOWING.map(check => ({ check }))]) {
    const provider = local(password === undefined ? {} : { password })
    const hash = await provider.hashPassword('correct horse', CONTEXT)
    t.strictSame(await provider.verifyPassword(hash, 'correct horse'), { matches: true, outdated: false })
  }
})

t.test("the application's rule refuses with a sentence of its own, or with the usual one", async t => {
  for (const [check, message] of REFUSING) {
    await t.rejects(
      local({ password: { check } }).hashPassword('correct horse', CONTEXT),
      { name: 'AuthError', code: 'weak_password', statusCode: 400, message }
    )
  }
})

t.test('a rule that gives no answer refuses', async t => {
  for (const verdict of [undefined, null, 0, 1, {}]) {
    await t.rejects(local({ password: { check: () => verdict } }).hashPassword('correct horse', CONTEXT), { code: 'weak_password' })
  }
})

t.test('a rule that throws makes no hash', async t => {
  const check = async () => { throw new Error('the list of leaked passwords cannot be reached') }

  await t.rejects(local({ password: { check } }).hashPassword('correct horse', CONTEXT), { message: 'the list of leaked passwords cannot be reached' })
})

t.test('a rule that throws an AuthError refuses with its code', async t => {
  const check = () => { throw new AuthError('breached_password') }

  await t.rejects(local({ password: { check } }).hashPassword('correct horse', CONTEXT), { code: 'breached_password', statusCode: 400 })
})

t.test('the rule is told the password in NFKC, the e-mail, the issuer and the language, once the length is right', async t => {
  const asked: unknown[] = []
  const provider = local({ password: { check: (...args: Parameters<PasswordCheck>) => asked.push(args) > 0, minLength: 10 } })

  await provider.hashPassword('\uff43orrect horse', CONTEXT)
  for (const short of ['short', 'nine char', 'a'.repeat(1025)]) {
    await t.rejects(provider.hashPassword(short, CONTEXT), { code: 'weak_password' })
  }

  t.strictSame(asked, [['correct horse', { email: 'ada@example.com', issuer: 'svc-auth-local', language: 'en' }]])
})

t.test('password.minLength counts the characters of a new password as a user does, after NFKC', async t => {
  const provider = local({ password: { minLength: 12, check: false } })
  const message = 'The password must have 12 characters or more, and at most 1024 bytes; choose another one.'
  const family = '\u{1f469}\u200d\u{1f469}\u200d\u{1f467}'

  for (const taken of ['a'.repeat(12), '\u00e9'.repeat(12), 'e\u0301'.repeat(12), family.repeat(12), 'correct horse', '\ufb03'.repeat(4)]) {
    t.match(await provider.hashPassword(taken, CONTEXT), /^\$argon2id/)
  }
  for (const weak of ['a'.repeat(11), '\u00e9'.repeat(11), family.repeat(11), '', 'a'.repeat(1025)]) {
    await t.rejects(provider.hashPassword(weak, CONTEXT), { code: 'weak_password', message })
  }
})

t.test('password.minLength is a whole number from 8 to 128, and with 8 the bytes decide', async t => {
  for (const minLength of [8, undefined]) {
    t.match(await local({ password: { minLength, check: false } }).hashPassword('\u{1f600}\u{1f600}', CONTEXT), /^\$argon2id/)
  }
  t.match(await local({ password: { minLength: 128, check: false } }).hashPassword('a'.repeat(128), CONTEXT), /^\$argon2id/)
  await t.rejects(local({ password: { minLength: 128 } }).hashPassword('a'.repeat(127), CONTEXT), { code: 'weak_password' })
})

t.test('a password that is shorter than password.minLength signs in, and is hashed anew', async t => {
  const old = await local().hashPassword('old horse', CONTEXT)
  const provider = local({ password: { minLength: 15 } })

  t.match(await provider.verifyPassword(old, 'old horse'), { matches: true })
  t.match(await provider.rehashPassword('old horse'), /^\$argon2id/)
})

t.test('a password in use is hashed anew without asking the rule, and the old hash is outdated', async t => {
  const old = await local().hashPassword('correct horse', CONTEXT)
  const provider = local({ argon2: { ...CHEAP, timeCost: 2 }, password: { check: () => false } })

  const renewed = await provider.rehashPassword('correct horse')

  t.strictSame(await provider.verifyPassword(old, 'correct horse'), { matches: true, outdated: true })
  t.strictSame(await provider.verifyPassword(renewed, 'correct horse'), { matches: true, outdated: false })
})

t.test('a wrong password and no hash match alike', async t => {
  const provider = local()
  const hash = await provider.hashPassword('correct horse', CONTEXT)

  t.strictSame(await provider.verifyPassword(hash, 'wrong horse'), { matches: false, outdated: false })
  t.strictSame(await provider.verifyPassword(null, 'correct horse'), { matches: false, outdated: false })
})

t.test('the commonest passwords are refused without any option, unless check is false', async t => {
  for (const password of ['password', '12345678', 'P@ssw0rd1', 'svc-auth-local']) {
    await t.rejects(local().hashPassword(password, CONTEXT), { code: 'weak_password', message: /most used/ }, password)
    await t.resolves(local({ password: { check: false } }).hashPassword(password, CONTEXT), password)
    await t.resolves(local({ password: { check: () => true } }).hashPassword(password, CONTEXT), 'a check of the application stands alone')
  }
})
