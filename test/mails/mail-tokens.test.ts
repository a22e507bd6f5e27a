import t from 'tap'
import { type AuthPluginOptions, LocalIdentityProvider, type LocalIdentityProviderOptions } from '../../lib/index.js'
import { type MailTokens, emailDigest } from '../../lib/core/mail-links.js'
import { LINK_LIFETIMES, type LinkMailKind } from '../../lib/core/mail.js'
import { resolveOptions } from '../../lib/options.js'
import { SESSION_SECRET } from '../helpers/app.js'
import { setEnv } from '../helpers/environment.js'
import { ecKey } from '../helpers/signing-key.js'

const [NEW, OLD] = ['new', 'old'].map(name => `the-${name}-secret-of-these-tests,-32-and-more`) as [string, string]
const PROOF = { userId: '6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', email: 'ada@example.com', generation: 3, to: null }
const OPENED = { userId: PROOF.userId, generation: 3, to: null, digest: emailDigest(PROOF.email) }
const KINDS = Object.keys(LINK_LIFETIMES) as LinkMailKind[]

/** The tokens of mails of an application. */
function tokensOf (options: LocalIdentityProviderOptions, dataSecret?: AuthPluginOptions['dataSecret']): MailTokens {
  const local = new LocalIdentityProvider({ sendMail: () => {}, ...options })
  const { mailTokens } = resolveOptions({ baseUrl: 'https://app.example', session: { secret: SESSION_SECRET }, local, dataSecret })
  if (mailTokens === null) throw new Error('the application sends mails')
  return mailTokens
}

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
  t.strictSame(LINK_LIFETIMES, { register: 86_400, 'verify-email': 86_400, 'reset-password': 1800, 'change-email': 1800, 'sign-in': 600 })
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

t.test('with a signing key and without dataSecret and its setting, the registration fails and names both', async t => {
  t.throws(() => tokensOf({ signingKey: ecKey() }), {
    name: 'OptionsError',
    message: 'dataSecret is required with sendMail and signingKey of the LocalIdentityProvider, because it signs the links in mails; ' +
      'set it, or SVC_AUTH_DATA_SECRET, for example to the output of: openssl rand -hex 32'
  })
  const sendMail = (): void => {}
  t.doesNotThrow(() => new LocalIdentityProvider({ signingKey: ecKey(), sendMail }), 'a process that sends no mails needs none')
  t.doesNotThrow(() => resolveOptions({ session: { secret: SESSION_SECRET }, local: new LocalIdentityProvider({ signingKey: ecKey() }) }))
})

t.test('with a signing key the secret of mails is dataSecret, else its setting', async t => {
  const token = await tokensOf({ signingKey: ecKey() }, NEW).issue('verify-email', PROOF)
  await t.rejects(tokensOf({ signingKey: ecKey() }, OLD).verify('verify-email', token), { code: 'invalid_token' })

  setEnv(t, { SVC_AUTH_DATA_SECRET: NEW })
  t.match(await tokensOf({ signingKey: ecKey() }).verify('verify-email', token), OPENED)
  await t.rejects(tokensOf({ signingKey: ecKey() }, OLD).verify('verify-email', token), { code: 'invalid_token' }, 'the option goes first')
})

t.test('with a secret of the provider, mails have that one and not dataSecret', async t => {
  const token = await tokensOf({ secret: NEW }).issue('verify-email', PROOF)

  t.match(await tokensOf({ secret: NEW }, OLD).verify('verify-email', token), OPENED)
  await t.rejects(tokensOf({ secret: OLD }, NEW).verify('verify-email', token), { code: 'invalid_token' })
})

t.test('the secret of mails is changed in three deployments, and each process takes the links of the others', async t => {
  const signingKey = ecKey()
  for (const [name, processWith] of [
    ['the option', (...secrets: string[]) => tokensOf({ signingKey }, secrets)],
    ['the setting', (...secrets: string[]) => {
      setEnv(t, { SVC_AUTH_DATA_SECRET: secrets.join('  ') })
      return tokensOf({ signingKey })
    }]
  ] as const) {
    const deployments = [processWith(OLD), processWith(OLD, NEW), processWith(NEW, OLD), processWith(NEW)]
    for (const [index, before] of deployments.slice(0, -1).entries()) {
      const after = deployments[index + 1] as MailTokens
      const both = [before, after]
      for (const [from, to] of [both, both.toReversed()] as Array<[MailTokens, MailTokens]>) {
        t.match(await to.verify('reset-password', await from.issue('reset-password', PROOF)), OPENED, `${name}, deployment ${index + 1}`)
      }
    }
    const [first, , , last] = deployments as [MailTokens, MailTokens, MailTokens, MailTokens]
    await t.rejects(last.verify('reset-password', await first.issue('reset-password', PROOF)), { code: 'invalid_token' }, name)
  }
})
