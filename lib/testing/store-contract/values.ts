import assert from 'node:assert/strict'
import type { IdentityClaims } from '../../claims.js'
import { type NewUser, newAccount } from '../../accounts/identities.js'
import { assertHas, isKept } from './assertions.js'
import {
  ADA, BEFORE_NUL, INVALID_REQUEST, JSON_OF_EVERY_KIND, ODD_TEXTS, WAYS_TO_NOTE, WITH_NUL, identity, link, localUser,
  newUser, vandalize
} from './fixtures.js'
import type { Rule } from './rule.js'

/** Values: copied when they are passed and returned, and kept as they are. */
export function valuesContract (rule: Rule): void {
  rule('a change whose rule returns a new account creates it, and one that returns none does nothing', async open => {
    const { store, twin, stores: { store: engine } } = await open()
    const account = newAccount(ADA, Date.now())

    assert.equal(await engine.change(ADA.link, {}, found => ({ result: found, account: null })), null)
    assert.equal(await twin.findUser(ADA.link), null)
    assert.equal(await engine.change(ADA.link, {}, found => ({ result: found, account })), null)

    assertHas(await twin.findUser(ADA.link), { userId: ADA.userId, email: 'ada@example.com' })
    assert.equal((await store.links(ADA.userId)).length, 1)
  })

  rule('what is handed in can be changed afterwards and changes nothing', async open => {
    const { store } = await open()
    const user = { ...localUser('bob@example.com'), claims: { list: ['a', { deep: ['b'] }] } }
    const sameUser = structuredClone(user)
    const refreshed = identity('local', 'bob@example.com', { claims: { sub: 'bob', list: ['b'] } })
    const added = identity('other', 'bob', { claims: { sub: 'bob', list: ['c'] } })
    const granted = { more: ['d'] }
    const withdrawn = ['nothing']

    await store.createUser(user)
    vandalize(user)
    assert.deepEqual((await store.links(sameUser.userId)).map(({ claims }) => claims), [sameUser.link.claims])
    await store.refreshIdentity(refreshed)
    await store.addLink(sameUser.userId, added)
    await store.grant(sameUser.userId, granted)
    await store.withdraw(sameUser.userId, withdrawn)
    for (const argument of [refreshed, added, granted, withdrawn]) vandalize(argument)

    assertHas(await store.findUser({ userId: sameUser.userId }), { email: 'bob@example.com', name: 'A user' })
    assert.deepEqual((await store.findUser({ userId: sameUser.userId }))?.claims, {
      list: ['a', { deep: ['b'] }],
      more: ['d']
    })
    assert.deepEqual(
      (await store.links(sameUser.userId)).map(({ claims }) => claims),
      [{ sub: 'bob', list: ['b'] }, { sub: 'bob', list: ['c'] }]
    )
  })

  rule('what was handed out can be changed and changes nothing', async open => {
    const { store } = await open()
    const bob = { ...localUser('bob@example.com'), claims: { list: ['a', { deep: ['b'] }] } }
    const { link: bobsLink, passwordHash, ...user } = structuredClone(bob)

    const handedOut = [
      await store.createUser(bob),
      await store.findUser({ userId: bob.userId }),
      await store.findUser({ email: 'bob@example.com' }),
      await store.findUser({ provider: 'local', subject: 'bob@example.com' }),
      await store.findCredential('bob@example.com'),
      await store.refreshIdentity({ ...bobsLink, verifiedEmail: null }),
      await store.addLink(bob.userId, identity('other', '1')),
      await store.addLink(bob.userId, identity('third', '1')),
      await store.removeLink(bob.userId, 'third'),
      await store.links(bob.userId),
      await store.grant(bob.userId, {}),
      await store.withdraw(bob.userId, [])
    ]
    for (const value of handedOut) vandalize(value)

    assertHas(await store.findUser({ userId: bob.userId }), user)
    assertHas(await store.findCredential('bob@example.com'), {
      user,
      link: { ...bobsLink, userId: bob.userId },
      passwordHash
    })
    assert.deepEqual(await store.links(bob.userId), [
      { ...bobsLink, userId: bob.userId },
      { ...link('other', '1'), userId: bob.userId }
    ])
    assert.equal(await store.findUser({ email: 'changed@example.com' }), null)
  })

  rule('claims are JSON of every kind', async open => {
    const { store, twin } = await open()
    await store.createUser({ ...ADA, claims: {} })
    const identityClaims: IdentityClaims = { ...JSON_OF_EVERY_KIND, sub: 'ada-1' }

    await store.grant(ADA.userId, JSON_OF_EVERY_KIND)
    await store.refreshIdentity(identity('dev', 'ada-1', { claims: identityClaims }))
    await store.addLink(ADA.userId, identity('other', 'ada-1', { claims: identityClaims }))

    assert.deepEqual((await twin.findUser({ userId: ADA.userId }))?.claims, JSON_OF_EVERY_KIND)
    assert.deepEqual((await twin.links(ADA.userId)).map(({ claims }) => claims), [identityClaims, identityClaims])
  })

  rule('claims can have odd names', async open => {
    const { store } = await open()
    await store.createUser({ ...ADA, claims: {} })
    const names = [
      '', ' ', 'a.b', '$.role', "it's", '"quoted"', '{a,b}', '[0]', '0', 'a\\b', 'naïve', 'nai\u0308ve', '😀',
      'https://app.example/role', 'toString'
    ]
    const claims = Object.fromEntries(names.map((name, index) => [name, index]))

    assert.deepEqual(await store.grant(ADA.userId, claims), claims)
    assert.deepEqual((await store.findUser({ userId: ADA.userId }))?.claims, claims)
    for (const name of names) assert.ok(!Object.hasOwn(await store.withdraw(ADA.userId, [name]), name), name)
    assert.deepEqual((await store.findUser({ userId: ADA.userId }))?.claims, {})
  })

  rule('any text is kept as it is', async open => {
    for (const text of ODD_TEXTS) {
      const { store, twin } = await open()
      const user = newUser({ name: text, claims: { text }, link: link('dev', text, { text }) })

      await store.createUser(user)
      assertHas(await twin.findUser({ userId: user.userId }), { name: text })
      const noted = await store.refreshIdentity({
        ...user.link,
        claims: { ...user.link.claims, name: text },
        verifiedEmail: null
      })
      await store.addLink(user.userId, identity('other', text))

      assertHas(noted, { name: text, claims: { text } })
      assert.deepEqual(await twin.findUser({ provider: 'dev', subject: text }), noted)
      assert.deepEqual((await twin.links(user.userId)).map(({ subject }) => subject), [text, text])
    }
  })

  rule('names and claims can be long', async open => {
    const { store, twin } = await open()
    const long = 'long 😀'.repeat(2_000)
    const user = newUser({ name: long, claims: { long }, link: link('dev', '1', { long }) })

    await store.createUser(user)
    const noted = await store.refreshIdentity({
      ...user.link,
      claims: { ...user.link.claims, name: `${long}!` },
      verifiedEmail: null
    })

    assert.deepEqual(noted, await twin.findUser({ userId: user.userId }))
    assertHas(noted, { name: `${long}!`, claims: { long } })
    assertHas(await twin.links(user.userId), [{ claims: { long } }])
  })

  rule('a NUL character is kept in a new user, or the user is refused', async open => {
    const variants: Array<Partial<NewUser>> = [
      { name: WITH_NUL },
      { claims: { text: WITH_NUL } },
      { claims: { [WITH_NUL]: true } },
      { link: link('dev', WITH_NUL) },
      { link: link('dev', '1', { text: WITH_NUL }) }
    ]
    for (const variant of variants) {
      const { store, twin } = await open()
      const bob = { ...localUser('bob@example.com'), ...variant }
      const { link: bobsLink, passwordHash, ...user } = bob

      if (await isKept(store.createUser(bob))) {
        assertHas(await twin.findUser({ userId: bob.userId }), user)
        assertHas(await twin.findUser({ provider: bobsLink.provider, subject: bobsLink.subject }), user)
        assert.deepEqual(await twin.links(bob.userId), [{ ...bobsLink, userId: bob.userId }])
      } else {
        assert.equal(await twin.findUser({ userId: bob.userId }), null)
        assert.equal(await twin.findUser({ email: 'bob@example.com' }), null)
        assert.deepEqual(await twin.links(bob.userId), [])
      }
      assert.equal(await twin.findUser({ provider: 'dev', subject: BEFORE_NUL }), null, 'nothing is cut off')
    }
  })

  for (const { way, note } of WAYS_TO_NOTE) {
    rule(`a NUL character in what a provider says is kept by ${way}, or nothing is noted`, async open => {
      for (const claims of [{ name: WITH_NUL }, { name: 'Ada', text: WITH_NUL }, { name: 'Ada', [WITH_NUL]: true }]) {
        const { store, twin } = await open()
        await store.createUser({ ...ADA, email: null, emailVerified: false })
        const before = [await twin.findUser({ userId: ADA.userId }), await twin.links(ADA.userId)]

        const noting = note(store, { claims: { sub: 'x', ...claims }, verifiedEmail: 'new@example.com' })

        if (await isKept(noting)) {
          assertHas(await twin.findUser({ email: 'new@example.com' }), { userId: ADA.userId, name: claims.name })
          assert.deepEqual((await twin.links(ADA.userId)).at(-1)?.claims, { sub: 'x', ...claims })
        } else {
          assert.deepEqual([await twin.findUser({ userId: ADA.userId }), await twin.links(ADA.userId)], before)
          assert.equal(await twin.findUser({ email: 'new@example.com' }), null)
        }
      }
    })
  }

  rule('a subject with a NUL character is kept as a second link, or refused', async open => {
    const { store, twin } = await open()
    await store.createUser(ADA)
    await store.createUser(newUser({ link: link('other', BEFORE_NUL), claims: { another: true } }))

    if (await isKept(store.addLink(ADA.userId, identity('other', WITH_NUL)))) {
      assertHas(await twin.refreshIdentity(identity('other', WITH_NUL)), { userId: ADA.userId })
      assert.equal((await twin.links(ADA.userId))[1]?.subject, WITH_NUL)
    } else {
      await assert.rejects(twin.refreshIdentity(identity('other', WITH_NUL)), INVALID_REQUEST)
      assert.deepEqual(await twin.links(ADA.userId), [{ ...ADA.link, userId: ADA.userId }])
    }
    assert.deepEqual(
      (await twin.findUser({ provider: 'other', subject: BEFORE_NUL }))?.claims,
      { another: true },
      'it is not that of another user'
    )
  })

  rule('a NUL character is kept in a grant, or nothing is granted', async open => {
    for (const claims of [{ text: WITH_NUL }, { list: ['a', { deep: WITH_NUL }] }, { [WITH_NUL]: true }]) {
      const { store, twin } = await open()
      await store.createUser(ADA)

      const kept = await isKept(store.grant(ADA.userId, { tier: 1, ...claims }))

      assert.deepEqual(
        (await twin.findUser({ userId: ADA.userId }))?.claims,
        kept ? { role: 'admin', tier: 1, ...claims } : { role: 'admin' }
      )
    }
  })

  rule('subjects that look alike are different people', async open => {
    const { store } = await open()
    const subjects = [
      'ada', 'ADA', 'Ada', ' ada', 'ada ', 'é', 'e\u0301', 'ﬁ', 'fi', 'ß', 'ss', 'i', 'ı', '1', '01', '1.0', '1e0',
      '+1', 'a:b', 'a/b', 'a%', 'a_', 'null', ''
    ]

    for (const subject of subjects) {
      await store.createUser(newUser({ link: link('dev', subject), claims: { subject } }))
    }

    for (const subject of subjects) {
      assertHas(await store.findUser({ provider: 'dev', subject }), { claims: { subject } }, `"${subject}"`)
    }
  })

  rule(
    'equal subjects at different providers are different people, wherever the one ends and the other begins',
    async open => {
      const { store } = await open()
      const pairs = [
        ['a', 'b c'],
        ['a b', 'c'],
        ['a b c', ''],
        ['a:b', 'c'],
        ['a', 'b:c'],
        ['a', '"b"'],
        ['a"', 'b"'],
        ['dev', '1'],
        ['Dev', '1'],
        ['other', '1']
      ] as const

      for (const [provider, subject] of pairs) {
        await store.createUser(newUser({ link: link(provider, subject), claims: { provider, subject } }))
      }

      for (const [provider, subject] of pairs) {
        const user = await store.findUser({ provider, subject })
        assertHas(user, { claims: { provider, subject } }, `${provider} | ${subject}`)
      }
    }
  )

  rule('a store can be closed twice', async open => {
    const { store, stores } = await open()
    await store.createUser(ADA)

    await stores.store.close()
    await stores.store.close()
  })
}
