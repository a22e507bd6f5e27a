import t from 'tap'
import { LocalIdentityProvider, type LocalIdentityProviderOptions } from '../../lib/index.js'
import { type MailTokens, emailDigest } from '../../lib/mails/mail-tokens.js'
import { LINK_LIFETIMES, type LinkMailKind } from '../../lib/mails/mail.js'
import { ecKey } from '../helpers/signing-key.js'

const [NEW, OLD, DATA] = ['new', 'old', 'data'].map(name => `the ${name} secret of these tests, 32 and more`) as [string, string, string]
const PROOF = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', email: 'ada@example.com', generation: 3, to: null }
const OPENED = { userId: PROOF.userId, generation: 3, to: null, digest: emailDigest(PROOF.email) }
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
      if (other === kind) t.match(await tokens.verify(other, token), { ...OPENED, kind }, other)
      else await t.rejects(tokens.verify(other, token), { code: 'invalid_token' }, `${kind} for ${other}`)
    }
  }
  const moved = await tokens.issue('change-email', { ...PROOF, to: 'ada@new.example' })
  t.match(await tokens.verify('change-email', moved), { ...OPENED, to: 'ada@new.example' })
})

t.test('a token of a mail has at most 150 characters, unless an address is in it', async t => {
  const tokens = tokensOf({ secret: NEW })
  for (const kind of ['verify-email', 'reset-password'] as const) {
    const email = `${'a'.repeat(64)}@${'b'.repeat(185)}.com`
    const token = await tokens.issue(kind, { ...PROOF, email, generation: 9999 })
    t.ok(token.length <= 150, `${kind}: ${token.length}`)
    t.match(await tokens.verify(kind, token), { userId: PROOF.userId, generation: 9999, digest: emailDigest(email) })
  }
})

t.test('a token of a mail is one of its issuer', async t => {
  const [here, there] = ['here', 'there'].map(issuer => tokensOf({ secret: NEW, issuer })) as [MailTokens, MailTokens]
  await t.rejects(there.verify('reset-password', await here.issue('reset-password', PROOF)), { code: 'invalid_token' })
})

t.test('attack 66: a token of a mail lives as long as its link, and a minute for clocks that differ', async t => {
  const tokens = tokensOf({ secret: NEW })
  const now = Date.now()
  t.strictSame(LINK_LIFETIMES, { register: 86_400, 'verify-email': 86_400, 'reset-password': 1800, 'change-email': 1800 })
  for (const kind of KINDS) {
    const token = await tokens.issue(kind, PROOF)
    t.intercept(Date, 'now', { value: () => now + LINK_LIFETIMES[kind] * 1000 + 58_000 })
    t.match(await tokens.verify(kind, token), OPENED)
    t.intercept(Date, 'now', { value: () => now + LINK_LIFETIMES[kind] * 1000 + 62_000 })
    await t.rejects(tokens.verify(kind, token), { code: 'invalid_token' })
    t.intercept(Date, 'now', { value: () => now })
  }
})

t.test('the first of several secrets signs, and each verifies', async t => {
  const [older, rolled, newest] = [[OLD], [NEW, OLD], [NEW]].map(secret => tokensOf({ secret })) as [MailTokens, MailTokens, MailTokens]

  t.match(await rolled.verify('reset-password', await older.issue('reset-password', PROOF)), OPENED)
  t.match(await newest.verify('reset-password', await rolled.issue('reset-password', PROOF)), OPENED)
  await t.rejects(newest.verify('reset-password', await older.issue('reset-password', PROOF)), { code: 'invalid_token' })
})

t.test('attack 68: no token of the application is one of a mail, and no token of a mail one of the application', async t => {
  const local = new LocalIdentityProvider({ secret: NEW, sendMail: () => {} })
  const tokens = tokensOf({ secret: NEW })
  const { userId, email, generation } = PROOF
  const issued = await local.issueIdToken(userId, { email, generation }, 60, { purpose: 'reset-password' })

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
  t.match(await tokensOf({ signingKey: ecKey() }).verify('verify-email', token), OPENED)
})
