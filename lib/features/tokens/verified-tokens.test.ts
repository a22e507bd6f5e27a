import t from 'tap'
import { TokenIssuer, VerifiedTokens } from './token-issuer.js'
import { keysOfSecrets } from './token-keys.js'
import { advanceClock } from '../../../test/helpers/clock.js'

const INVALID = { name: 'AuthError', code: 'invalid_token' }
const MINUTE_MS = 60_000

const issuer = new TokenIssuer('svc-auth-local', keysOfSecrets(['the local secret of these tests, 32+']))

/** A token that has been verified before. */
async function knownToken (use = {}): Promise<string> {
  const token = await issuer.issue('ada', { roles: ['member'] }, 90, use)
  await issuer.verify(token, use)
  return token
}

const claimsOf = (number: number) => ({ iss: 'svc-auth-local', sub: `user ${number}`, iat: 1, exp: 2, jti: String(number) })

t.test('a token says the same each time that it is verified, whatever became of its claims in between', async t => {
  const token = await issuer.issue('ada', { roles: ['member'] }, 90, {})

  for (let time = 0; time < 3; time++) {
    const claims = await issuer.verify(token, {})
    t.match(claims, { sub: 'ada', roles: ['member'] })
    Object.assign(claims, { sub: 'bob', exp: Infinity, roles: Object.assign(claims.roles ?? [], { 0: 'admin' }) })
  }
})

t.test('attack 48: a token that was verified before ends when it expires', async t => {
  const token = await knownToken()

  advanceClock(t, MINUTE_MS)
  t.match(await issuer.verify(token, {}), { sub: 'ada' })
  advanceClock(t, MINUTE_MS)
  await t.rejects(issuer.verify(token, {}), INVALID)
})

t.test('attack 48: a token that was verified before is refused when the clock is set back to before it was issued', async t => {
  const token = await knownToken()

  advanceClock(t, -MINUTE_MS)
  await t.rejects(issuer.verify(token, {}), INVALID)
})

t.test('attack 51: a token that was verified before is good for no other use', async t => {
  const use = { purpose: 'invitation' }
  const token = await knownToken(use)

  await t.rejects(issuer.verify(token, {}), INVALID)
  await t.rejects(issuer.verify(await knownToken(), use), INVALID)
  t.match(await issuer.verify(token, use), { sub: 'ada' })
})

t.test('attack 47: a token that one issuer has verified is unknown to one with another secret or name', async t => {
  const token = await knownToken()

  await t.rejects(new TokenIssuer('svc-auth-local', keysOfSecrets(['another secret of these tests, 32+'])).verify(token, {}), INVALID)
  await t.rejects(new TokenIssuer('another', keysOfSecrets(['the local secret of these tests, 32+'])).verify(token, {}), INVALID)
})

t.test('attack 46: what is like a token that was verified before, but for one character, is not known', async t => {
  const token = await knownToken()

  for (let index = 0; index < token.length; index++) {
    const other = token[index] === 'A' ? 'B' : 'A'
    await t.rejects(issuer.verify(token.slice(0, index) + other + token.slice(index + 1), {}), INVALID)
  }
})

t.test('a thousand tokens are remembered, and those that were not used for longest are forgotten first', async t => {
  const verified = new VerifiedTokens()
  for (let number = 0; number < 1000; number++) verified.add(`token ${number}`, claimsOf(number))
  t.strictSame(verified.claimsOf('token 0'), claimsOf(0))

  verified.add('token 1000', claimsOf(1000))
  verified.add('token 1000', claimsOf(1000))

  t.equal(verified.claimsOf('token 1'), undefined)
  t.strictSame(verified.claimsOf('token 0'), claimsOf(0), 'it was used meanwhile')
  t.strictSame(verified.claimsOf('token 2'), claimsOf(2))
  t.strictSame(verified.claimsOf('token 1000'), claimsOf(1000))
})
