import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Account, type Factor, withFactors } from '../../accounts/account.js'
import type { FactorChange, FactorSpending } from '../../accounts/factors.js'
import { newAccount } from '../../accounts/identities.js'
import { assertHas } from './assertions.js'
import {
  ADA, JSON_OF_EVERY_KIND, NO_USER_IDS, identity, localUser, newUser, reasonsOf, valuesOf, vandalize
} from './fixtures.js'
import { type AccountsRule, type Rule, onAccounts } from './rule.js'

const AT_ONCE = 10

const EXISTS = { name: 'AuthError', code: 'exists', statusCode: 409 }

/** Factors of users, and the attempts at their codes. */
export function factorsContract (rule: Rule): void {
  const managed = onAccounts(rule)
  readsContract(rule)
  changesContract(managed)
  ownersContract(rule)
  removalContract(managed)
  attemptsContract(rule)
}

function readsContract (rule: Rule): void {
  rule('the factors of one user are read, and copied; a user without any has none, nor has one who is unknown', async (
    open
  ) => {
    const { store, stores: { store: engine, twin } } = await open()
    const [bob, ofAda] = [newUser(), [factor({ createdAt: 1 }), factor({ createdAt: 2 })]]
    for (const user of [ADA, bob]) await store.createUser(user)
    assert.deepEqual(await twin.factors(ADA.userId), [])
    await store.changeFactors(ADA.userId, to(ofAda))
    await store.changeFactors(bob.userId, to([factor()]))

    vandalize(await twin.factors(ADA.userId))

    for (const read of [engine, twin]) assert.deepEqual(await read.factors(ADA.userId), ofAda)
    for (const id of [randomUUID(), ...NO_USER_IDS]) assert.deepEqual(await twin.factors(id), [], JSON.stringify(id))
  })
}

function changesContract (managed: AccountsRule): void {
  managed('factors are kept as they are, in the order in which they were added', async (store, twin) => {
    const totp = factor({ secret: 'a sealed secret', counter: 59_000_001, createdAt: 2000, usedAt: 3000 })
    const recovery = factor({ kind: 'recovery', data: { hashes: ['b', 'a'] }, createdAt: 1000 })
    const passkeys = ['Zb', 'aC_-', 'Za'].map(id => factor({
      id, kind: 'passkey', name: "Ada's phone 👩‍💻", data: JSON_OF_EVERY_KIND, counter: 2 ** 32 - 1, createdAt: 2000
    }))
    await store.createUser(ADA)

    const user = await store.changeFactors(ADA.userId, to([totp, ...passkeys, recovery]))

    const inOrder = [recovery, ...[totp, ...passkeys].sort((a, b) => a.id < b.id ? -1 : 1)]
    assert.deepEqual(await twin.factors(ADA.userId), inOrder)
    assert.deepEqual(user?.factors, ['passkey', 'recovery', 'totp'])
    assert.deepEqual(await twin.findUser({ userId: ADA.userId }), user)
  })

  managed('a factor is added, changed, replaced and removed, and the others stay', async (store, twin) => {
    const [totp, recovery, another] = [
      factor({ createdAt: 1 }), factor({ kind: 'recovery', createdAt: 2 }), factor({ createdAt: 3 })
    ]
    await store.createUser(ADA)
    await store.changeFactors(ADA.userId, to([totp]))
    await twin.changeFactors(ADA.userId, to([totp, recovery]))
    assert.deepEqual(await store.factors(ADA.userId), [totp, recovery])

    const used = { ...totp, counter: 7, usedAt: 8, name: 'renamed', secret: 'sealed anew', data: { more: 1 } }
    await twin.changeFactors(ADA.userId, to([used, recovery]))
    assert.deepEqual(await store.factors(ADA.userId), [used, recovery])

    assertHas(await twin.changeFactors(ADA.userId, to([recovery, another])), { factors: ['recovery', 'totp'] })
    assert.deepEqual(await store.factors(ADA.userId), [recovery, another])

    const left = await twin.changeFactors(ADA.userId, to([]))
    assert.equal(left?.factors, undefined)
    assert.deepEqual(await store.factors(ADA.userId), [])
    assert.deepEqual(await store.findUser({ userId: ADA.userId }), left)
  })

  managed('factors are passed to the change with the account, and copied', async (store, twin) => {
    const data = { hashes: ['a'] }
    await store.createUser(ADA)
    await store.changeFactors(ADA.userId, to([factor({ data })]))
    data.hashes.push('changed')

    vandalize(await twin.factors(ADA.userId))
    vandalize(await twin.attemptFactor(ADA.userId, 0))
    let seen: unknown
    await twin.changeFactors(ADA.userId, {
      endsSessions: false,
      change: (factors, account) => {
        seen = [factors[0]?.data, account.userId, account.factors]
        return null
      }
    })

    assert.deepEqual(seen, [{ hashes: ['a'] }, ADA.userId, await store.factors(ADA.userId)])
  })

  managed('a change for another generation, one that returns null and one that throws write nothing', async (
    store, twin
  ) => {
    const kept = factor()
    await store.createUser(ADA)
    await store.changeFactors(ADA.userId, { ...to([kept]), endsSessions: true })
    const before = await twin.findUser({ userId: ADA.userId })

    assert.equal(await store.changeFactors(ADA.userId, { ...to([]), generation: 0 }), null)
    assert.equal(await store.changeFactors(ADA.userId, { change: () => null, endsSessions: true }), null)
    const thrown = store.changeFactors(ADA.userId, { change: () => { throw new Refusal() }, endsSessions: true })
    await assert.rejects(thrown)

    assert.deepEqual(await twin.findUser({ userId: ADA.userId }), before)
    assert.deepEqual(await twin.factors(ADA.userId), [kept])
    assert.ok(await store.changeFactors(ADA.userId, { ...to([]), generation: 1 }))
  })

  managed('a code is spent by one of many requests at once', async (store, twin) => {
    const totp = factor({ counter: 1 })
    await store.createUser(ADA)
    await store.changeFactors(ADA.userId, to([totp]))
    const spend: FactorChange = {
      endsSessions: false,
      change: factors => factors.some(({ counter }) => counter >= 2)
        ? null
        : factors.map(factor => ({ ...factor, counter: 2 }))
    }

    const spent = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
      (index % 2 === 0 ? store : twin).changeFactors(ADA.userId, spend)))

    assert.equal(spent.filter(user => user !== null).length, 1)
    assert.deepEqual(await store.factors(ADA.userId), [{ ...totp, counter: 2 }])
  })

  managed('a factor is used or removed, not both', async (store, twin) => {
    for (let round = 0; round < AT_ONCE; round++) {
      const user = await store.createUser(newUser())
      assert.ok(user !== null)
      const { userId } = user
      const [one, kept] = [factor({ createdAt: 1 }), factor({ createdAt: 2 })]
      const unlessTouched = (factors: Factor[]): FactorChange => ({
        endsSessions: round % 3 === 0,
        change: ([first]) => first?.id === one.id && first.counter === 0 ? factors : null
      })
      const used = [{ ...one, counter: 1 }, kept]
      await store.changeFactors(userId, to([one, kept]))
      const both = [
        () => store.changeFactors(userId, unlessTouched(used)),
        () => twin.changeFactors(userId, unlessTouched([kept]))
      ]

      const done = await Promise.all(both.map(change => change()))

      assert.equal(done.filter(user => user !== null).length, 1)
      assert.deepEqual(await store.factors(userId), done[0] === null ? [kept] : used)
    }
  })

  managed('of factors that are added at once none is lost', async (store, twin) => {
    await store.createUser(ADA)
    const added = Array.from({ length: AT_ONCE }, (_, index) => factor({ createdAt: index }))

    await Promise.all(added.map((one, index) => (index % 2 === 0 ? store : twin).changeFactors(ADA.userId, {
      endsSessions: false,
      change: factors => [...factors, one]
    })))

    assert.deepEqual(await store.factors(ADA.userId), added)
  })

  managed('what else changes an account leaves its factors alone', async (store, twin) => {
    const bob = localUser('bob@example.com')
    const kept = factor()
    await store.createUser(bob)
    await store.changeFactors(bob.userId, to([kept]))

    await store.refreshIdentity({ ...bob.link, claims: { sub: 'bob', name: 'Bob' }, verifiedEmail: 'bob@example.com' })
    await twin.addLink(bob.userId, identity('other', 'bob-1'))
    await store.grant(bob.userId, { role: 'member' })
    await twin.changeUser(bob.userId, { name: 'Robert', endSessions: true })
    await store.setPassword(bob.userId, { passwordHash: 'another hash' })
    await twin.removeLink(bob.userId, 'other')
    const token = { userId: bob.userId, email: 'bob@example.com', generation: 3 }
    await store.verifyEmail(token)
    assert.ok(await twin.resetPassword(token, 'a third hash'))

    assert.deepEqual(await store.factors(bob.userId), [kept])
    assertHas(await twin.findCredential('bob@example.com'), { user: { factors: ['totp'] } })
  })
}

function ownersContract (rule: Rule): void {
  const managed = onAccounts(rule)
  managed('a factor with the id of one of another user is refused, and nothing is written', async (store, twin) => {
    const [ofAda, ofBob] = [factor({ id: 'shared', kind: 'passkey' }), factor()]
    const bob = newUser()
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.changeFactors(ADA.userId, to([ofAda]))
    await store.changeFactors(bob.userId, to([ofBob]))
    const before = await twin.findUser({ userId: bob.userId })

    for (const endsSessions of [false, true]) {
      const stolen = { ...to([{ ...ofAda, name: 'stolen' }]), endsSessions }
      await assert.rejects(twin.changeFactors(bob.userId, stolen), EXISTS)
    }

    assert.deepEqual(await twin.findUser({ userId: bob.userId }), before)
    assert.deepEqual(await store.factors(bob.userId), [ofBob])
    assert.deepEqual(await store.factors(ADA.userId), [ofAda])
    await store.changeFactors(ADA.userId, to([]))
    assert.ok(await twin.changeFactors(bob.userId, to([ofBob, ofAda])), 'it is free again')
  })

  managed('a user is created with a factor, or not at all where another user has its id', async (store, twin) => {
    const passkey = factor({ id: 'shared', kind: 'passkey', name: 'Phone' })
    const bob = newUser()
    const ada = await store.createUser({ ...ADA, initialFactors: [passkey] })

    assert.deepEqual(ada?.factors, ['passkey'])
    assert.deepEqual(await twin.findUser({ userId: ADA.userId }), ada)
    assert.deepEqual(await twin.factors(ADA.userId), [passkey])
    assert.equal(await twin.createUser({ ...bob, initialFactors: [{ ...passkey, name: 'stolen' }] }), null)
    assert.equal(await store.findUser({ userId: bob.userId }), null)
    assert.deepEqual(await store.factors(ADA.userId), [passkey])
    assert.ok(await twin.createUser({ ...bob, initialFactors: [factor()] }))
  })

  managed('of many users who add one factor at once, one gets it', async (store, twin) => {
    const rivals = Array.from({ length: AT_ONCE }, () => newUser())
    for (const user of rivals) await store.createUser(user)

    const added = await Promise.allSettled(rivals.map(({ userId }, index) =>
      (index % 2 === 0 ? store : twin).changeFactors(userId, to([factor({ id: 'shared' })]))))

    assert.equal(valuesOf(added).length, 1)
    for (const reason of reasonsOf(added)) assertHas(reason, EXISTS)
    const owners = await Promise.all(rivals.map(({ userId }) => twin.factors(userId)))
    assert.equal(owners.flat().length, 1)
  })

  rule('an account is inserted with its factors, unless another user has one of them', async open => {
    const { store, twin, stores: { store: engine } } = await open()
    const one = factor()
    const accountOf = (factors: Factor[]): Account => withFactors(newAccount(newUser(), Date.now()), factors)
    const [ada, bob, carol, dave] = [accountOf([one]), accountOf([one]), accountOf([factor()]), accountOf([one])]
    const make = (account: Account): Promise<null> =>
      engine.change({ userId: account.userId }, {}, () => ({ result: null, account }))

    assert.equal(await engine.insert(ada), true)
    assert.equal(await engine.insert(bob), false)
    assert.equal(await make(carol), null)
    await assert.rejects(make(dave), EXISTS)

    assert.deepEqual(await twin.factors(ada.userId), [one])
    assert.deepEqual(await store.factors(carol.userId), carol.factors)
    for (const { userId } of [bob, dave]) assert.equal(await twin.findUser({ userId }), null)
  })
}

function removalContract (managed: AccountsRule): void {
  managed('a user is deleted with their factors, whose ids are free', async (store, twin) => {
    const [one, kept] = [factor(), factor()]
    const bob = newUser()
    await store.createUser(ADA)
    await store.createUser(bob)
    await store.changeFactors(ADA.userId, to([one]))
    await store.changeFactors(bob.userId, to([kept]))

    await twin.deleteUser(ADA.userId)

    assert.deepEqual(await store.factors(ADA.userId), [])
    await store.createUser(ADA)
    assert.deepEqual(await twin.factors(ADA.userId), [])
    assert.ok(await twin.changeFactors(bob.userId, to([kept, one])))
  })
}

function attemptsContract (rule: Rule): void {
  const managed = onAccounts(rule)
  managed('of many attempts at once as many are allowed as are left, and one refusal is the first', async (
    store, twin
  ) => {
    await store.createUser(ADA)
    for (let count = 0; count < 9; count++) await store.attemptFactor(ADA.userId, 0)

    const attempts = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
      (index % 2 === 0 ? store : twin).attemptFactor(ADA.userId, 0)))

    assert.equal(attempts.filter(attempt => attempt?.isRefused === false).length, 1)
    assert.equal(attempts.filter(attempt => attempt?.isRefused === true && attempt.isFirst).length, 1)
  })

  managed('a code is spent with the attempt: by one of several at once, and by no refused one', async (
    store, twin
  ) => {
    const [passkey, totp] = [factor({ kind: 'passkey', createdAt: 1 }), factor({ createdAt: 2 })]
    const spendingAt = (step: number): FactorSpending => factors => {
      const present = factors.find(({ id }) => id === totp.id)
      return present !== undefined && present.counter < step ? { ...present, counter: step } : null
    }
    await store.createUser(ADA)
    const user = await store.changeFactors(ADA.userId, to([passkey, totp]))

    assert.equal(await store.attemptFactor(ADA.userId, 1, spendingAt(7)), null)
    const attempts = await Promise.all(Array.from({ length: 9 }, (_, index) =>
      (index % 2 === 0 ? store : twin).attemptFactor(ADA.userId, 0, spendingAt(7))))
    assert.deepEqual(attempts.filter(attempt => attempt?.isRefused === false && attempt.spent !== null), [
      { isRefused: false, user, spent: { ...totp, counter: 7 } }
    ])
    assert.deepEqual(await twin.attemptFactor(ADA.userId, 0, spendingAt(7)), { isRefused: false, user, spent: null })
    assertHas(await twin.attemptFactor(ADA.userId, 0, spendingAt(8)), { isRefused: true })

    assert.deepEqual(await twin.factors(ADA.userId), [passkey, { ...totp, counter: 7 }])
  })
}

/** What a change throws. */
class Refusal extends Error {}

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
