import t from 'tap'
import { LocalIdentityProvider, type LocalIdentityProviderOptions } from '../../lib/index.js'
import type { MailTokens } from '../../lib/mails/mail-tokens.js'
import { LINK_LIFETIMES, type LinkMailKind } from '../../lib/mails/mail.js'
import { ecKey } from '../helpers/signing-key.js'

const [NEW, OLD, DATA] = ['new', 'old', 'data'].map(name => `the ${name} secret of these tests, 32 and more`) as [string, string, string]
const PROOF = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', email: 'ada@example.com', generation: 3 }
const KINDS = Object.keys(LINK_LIFETIMES) as LinkMailKind[]

/** The tokens of mails of a provider. */
function tokensOf (options: LocalIdentityProviderOptions): MailTokens {
  const { mail } = new LocalIdentityProvider({ sendMail: () => {}, ...options })
  if (mail === null) throw new Error('the provider sends mails')
  return mail.tokens
}

t.beforeEach(() => { delete process.env.SVC_AUTH_DATA_SECRET })
t.teardown(() => { delete process.env.SVC_AUTH_DATA_SECRET })

t.test('a token of a mail carries its proof for its kind alone', async t => {
  const tokens = tokensOf({ secret: NEW })
  for (const kind of KINDS) {
    const token = await tokens.issue(kind, PROOF)
    for (const other of KINDS) {
      if (other === kind) t.match(await tokens.verify(other, token), PROOF, other)
      else await t.rejects(tokens.verify(other, token), { code: 'invalid_token' }, `${kind} for ${other}`)
    }
  }
  const moved = await tokens.issue('change-email', { ...PROOF, to: 'ada@new.example' })
  t.strictSame(await tokens.verify('change-email', moved), { ...PROOF, to: 'ada@new.example' })
})

t.test('attack 66: a token of a mail lives as long as its link', async t => {
  const tokens = tokensOf({ secret: NEW })
  const now = Date.now()
  t.strictSame(LINK_LIFETIMES, { register: 86_400, 'verify-email': 86_400, 'reset-password': 1800, 'change-email': 1800 })
  for (const kind of KINDS) {
    const token = await tokens.issue(kind, PROOF)
    t.intercept(Date, 'now', { value: () => now + LINK_LIFETIMES[kind] * 1000 - 2000 })
    t.match(await tokens.verify(kind, token), PROOF)
    t.intercept(Date, 'now', { value: () => now + LINK_LIFETIMES[kind] * 1000 + 2000 })
    await t.rejects(tokens.verify(kind, token), { code: 'invalid_token' })
    t.intercept(Date, 'now', { value: () => now })
  }
})

t.test('the first of several secrets signs, and each verifies', async t => {
  const [older, rolled, newest] = [[OLD], [NEW, OLD], [NEW]].map(secret => tokensOf({ secret })) as [MailTokens, MailTokens, MailTokens]

  t.match(await rolled.verify('reset-password', await older.issue('reset-password', PROOF)), PROOF)
  t.match(await newest.verify('reset-password', await rolled.issue('reset-password', PROOF)), PROOF)
  await t.rejects(newest.verify('reset-password', await older.issue('reset-password', PROOF)), { code: 'invalid_token' })
})

t.test('attack 68: no token of the application is one of a mail, and no token of a mail one of the application', async t => {
  const local = new LocalIdentityProvider({ secret: NEW, sendMail: () => {} })
  const tokens = tokensOf({ secret: NEW })
  const { userId, ...claims } = PROOF
  const issued = await local.issueIdToken(userId, claims, 60, { purpose: 'reset-password' })

  await t.rejects(tokens.verify('reset-password', issued), { code: 'invalid_token' })
  const mailed = await tokens.issue('reset-password', PROOF)
  await t.rejects(local.verifyIdToken(mailed), { code: 'invalid_token' })
  await t.rejects(local.verifyIdToken(mailed, { purpose: 'reset-password' }), { code: 'invalid_token' })
})

t.test('with a signing key alone, mails have the secret SVC_AUTH_DATA_SECRET', async t => {
  const options = { signingKey: ecKey() }
  t.throws(() => tokensOf(options), {
    name: 'OptionsError',
    message: /^the secret of mails, which sendMail needs beside signingKey, must be at least 32 characters; set SVC_AUTH_DATA_SECRET/
  })
  t.doesNotThrow(() => new LocalIdentityProvider(options), 'without mails it needs none')

  process.env.SVC_AUTH_DATA_SECRET = DATA
  const token = await tokensOf(options).issue('verify-email', PROOF)
  t.match(await tokensOf({ signingKey: ecKey() }).verify('verify-email', token), PROOF)
})
