import t from 'tap'
import { AuthError } from '../../index.js'
import { all } from '../../passwords.js'
import type { PasswordCheck } from './checks.js'

const CONTEXT = { email: 'ada@example.com', issuer: 'svc-auth-local', language: 'en' }

t.test('several checks are asked in their order, and the first that refuses answers', async t => {
  const asked: unknown[] = []
  const check = (verdict: boolean | string): PasswordCheck => async (...args) => {
    asked.push(args)
    return verdict
  }

  t.equal(await all()('password', CONTEXT), true)
  t.equal(await all(check(true), () => true)('password', CONTEXT), true)
  t.equal(await all(check(true), check('Too short.'), check('Never asked.'))('password', CONTEXT), 'Too short.')
  t.equal(await all(check(false), check('Never asked.'))('password', CONTEXT), false)
  t.strictSame(asked, Array.from({ length: 4 }, () => ['password', CONTEXT]))
})

t.test('what a check throws is thrown', async t => {
  const check: PasswordCheck = () => { throw new AuthError('breached_password') }
  await t.rejects(async () => all(check)('password', CONTEXT), { code: 'breached_password' })
})

t.test('what is not a check is refused', async t => {
  for (const wrong of [undefined, null, 'common', {}, [() => true]]) {
    t.throws(() => Reflect.apply(all, null, [() => true, wrong]), { name: 'OptionsError', message: /^all takes checks of passwords/ })
  }
})
