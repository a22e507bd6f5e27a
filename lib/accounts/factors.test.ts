/** Rules of factors, and of the attempts at their codes. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { newAccounts } from '../../test/helpers/accounts.js'
import type { Account, Factor } from './account.js'
import { Accounts } from './accounts.js'
import { type FactorAttempt, type FactorChange, attemptFactor } from './factors.js'
import { MemoryAuthStore } from '../engines/memory/memory.js'
import { ADA, NO_USER_IDS, identity, localUser, newUser } from '../testing/store-contract/fixtures.js'

const MINUTE_MS = 60_000
const WINDOW_MS = 15 * MINUTE_MS

t.test('a user without factors has none, nor has one who is unknown', async t => {
  const store = newAccounts()
  const created = await store.createUser(ADA)

  t.equal(created?.factors, undefined)
  t.strictSame(await store.factors(ADA.userId), [])
  for (const id of [randomUUID(), ...NO_USER_IDS]) {
    t.strictSame(await store.factors(id), [], JSON.stringify(id))
    t.equal(await store.changeFactors(id, to([factor()])), null)
    t.equal(await store.attemptFactor(id, 0), null)
  }
})

t.test('a change ends all sessions if it says so', async t => {
  const store = newAccounts()
  await store.createUser(ADA)

  const added = await store.changeFactors(ADA.userId, { ...to([factor()]), endsSessions: true })
  t.equal(added?.generation, 1)
  t.hasStrict(await store.status(ADA.userId), { generation: 1 })
  t.equal((await store.factors(ADA.userId)).length, 1)

  t.equal((await store.changeFactors(ADA.userId, to([factor()])))?.generation, 1)
  t.equal((await store.changeFactors(ADA.userId, { ...to([]), endsSessions: true }))?.generation, 2)
  t.strictSame(await store.factors(ADA.userId), [])
})

t.test('a reset of an address that was not verified removes all factors, one that was verified none', async t => {
  const store = newAccounts()
  for (const emailVerified of [false, true]) {
    const bob = { ...localUser(`bob-${emailVerified}@example.com`), emailVerified }
    await store.createUser(bob)
    await store.changeFactors(bob.userId, to([factor(), factor({ kind: 'passkey' })]))

    const reset = await store.resetPassword({ ...tokenOf(bob), generation: 0 }, 'a new hash')

    t.strictSame(reset?.user.factors, emailVerified ? ['passkey', 'totp'] : undefined)
    t.equal((await store.factors(bob.userId)).length, emailVerified ? 2 : 0)
    t.strictSame((await store.findUser({ userId: bob.userId }))?.factors, reset?.user.factors)
  }
})

t.test('an address that is released leaves a user without factors', async t => {
  const store = newAccounts()
  const bob = localUser('bob@example.com')
  await store.createUser(bob)
  await store.addLink(bob.userId, identity('other', 'bob-1'))
  await store.changeFactors(bob.userId, to([factor()]))

  t.equal(await store.releaseEmail({ ...tokenOf(bob), generation: 0 }), 'freed')

  t.equal((await store.findUser({ userId: bob.userId }))?.factors, undefined)
  t.strictSame(await store.factors(bob.userId), [])
})

t.test('ten attempts are allowed, of those that follow one is the first refusal', async t => {
  const store = newAccounts()
  const totp = factor()
  await store.createUser(ADA)
  const user = await store.changeFactors(ADA.userId, to([totp]))

  for (let count = 0; count < 10; count++) {
    const attempt = await store.attemptFactor(ADA.userId, 0)
    t.strictSame(attempt, { isRefused: false, user, spent: null })
  }
  const refused = [await store.attemptFactor(ADA.userId, 0), await store.attemptFactor(ADA.userId, 0)]

  for (const [index, attempt] of refused.entries()) {
    t.hasStrict(attempt, { isRefused: true, user, isFirst: index === 0 })
    const retryAfter = attempt?.isRefused === true ? attempt.retryAfter : NaN
    t.ok(Number.isInteger(retryAfter) && retryAfter > 600 && retryAfter <= 900, `${retryAfter} seconds`)
  }
  t.strictSame(await store.factors(ADA.userId), [totp])
})

t.test('attempts are counted for each user, and anew for a new generation', async t => {
  const store = newAccounts()
  const bob = newUser()
  await store.createUser(ADA)
  await store.createUser(bob)
  for (let count = 0; count < 11; count++) await store.attemptFactor(ADA.userId, 0)

  t.hasStrict(await store.attemptFactor(bob.userId, 0), { isRefused: false })
  await store.changeFactors(ADA.userId, to([factor()]))
  t.hasStrict(await store.attemptFactor(ADA.userId, 0), { isRefused: true }, 'a success does not reset the count')
  await store.changeUser(ADA.userId, { endSessions: true })

  t.equal(await store.attemptFactor(ADA.userId, 0), null)
  for (let count = 0; count < 10; count++) {
    t.hasStrict(await store.attemptFactor(ADA.userId, 1), { isRefused: false })
  }
  t.hasStrict(await store.attemptFactor(ADA.userId, 1), { isRefused: true, isFirst: true })
})

t.test('an attempt counts for fifteen minutes, and a user is told once in that time', async t => {
  const engine = new MemoryAuthStore()
  const store = new Accounts(engine)
  await store.createUser(ADA)
  const start = Date.now()
  const attempt = (minutes: number): Promise<FactorAttempt | null> =>
    engine.change({ userId: ADA.userId }, {}, attemptFactor(0, () => null, start + minutes * MINUTE_MS))
  for (let minute = 0; minute < 10; minute++) t.hasStrict(await attempt(minute), { isRefused: false })

  t.hasStrict(await attempt(10), { isRefused: true, retryAfter: 300, isFirst: true })
  t.hasStrict(await attempt(14.999), { isRefused: true, retryAfter: 1, isFirst: false })
  t.hasStrict(await attempt(15), { isRefused: false }, 'the first one is over')
  t.hasStrict(await attempt(15), { isRefused: true, retryAfter: 60, isFirst: false })
  t.hasStrict(await attempt(16), { isRefused: false })
  for (let minute = 17; minute < 25; minute++) t.hasStrict(await attempt(minute), { isRefused: false })
  t.hasStrict(await attempt(25), { isRefused: true, isFirst: true }, 'told fifteen minutes ago')
})

t.test('a clock that was set back refuses no attempts for longer', async t => {
  const engine = new MemoryAuthStore()
  const store = new Accounts(engine)
  await store.createUser(ADA)
  const at = (now: number): Promise<FactorAttempt | null> =>
    engine.change({ userId: ADA.userId }, {}, attemptFactor(0, () => null, now))
  const [now, later] = [Date.now(), Date.now() + 24 * 60 * MINUTE_MS]
  for (let count = 0; count < 10; count++) await at(later)

  t.hasStrict(await at(later - MINUTE_MS), { isRefused: true, isFirst: true })
  t.hasStrict(await at(later - WINDOW_MS), { isRefused: false })
  t.hasStrict(await at(now), { isRefused: false })
})

/** A change to these factors, whatever there were. */
function to (factors: readonly Factor[]): FactorChange {
  return { change: () => factors, endsSessions: false }
}

function factor (more: Partial<Factor> = {}): Factor {
  const id = randomUUID()
  return {
    id, kind: 'totp', name: null, secret: null, data: {}, counter: 0, createdAt: Date.now(), usedAt: null, ...more
  }
}

function tokenOf ({ userId, email }: Pick<Account, 'userId' | 'email'>) {
  return { userId, email: String(email) }
}
