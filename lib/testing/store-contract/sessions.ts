import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Accounts } from '../../accounts/accounts.js'
import {
  type Acting, type FoundSession, type NewSession, type OneTimeEntries, type SessionUser, type StoredSessions,
  capabilitiesOf
} from '../../session/store.js'
import { assertHas } from './assertions.js'
import { ADA as ADA_OF_DEV } from './fixtures.js'
import type { Rule } from './rule.js'

const NOW = 1_800_000_000_000
const { userId } = ADA_OF_DEV
const OTHER_ID = '0b0c7f4e-5f0a-4f0e-8f50-3a1b0a2c9d11'
const PROOFS = { at: NOW, methods: [{ method: 'provider', at: NOW }] } as const

const ADA: SessionUser = {
  userId, provider: 'dev', claims: { sub: userId, role: 'admin' }, generation: 0, proofs: PROOFS
}

const SIGN_OUT = { now: NOW, isSignOut: true }
const END = { now: NOW, isSignOut: false }

/** The optional member `sessions`. */
export function sessionsContract (rule: Rule): void {
  type Check = (
    sessions: StoredSessions, twin: StoredSessions, store: Accounts, entries: OneTimeEntries
  ) => Promise<void>
  const kept = (name: string, check: Check): void => {
    rule(name, async open => {
      const { store, stores } = await open()
      const { sessions, entries } = capabilitiesOf(stores.store)
      const { sessions: twin } = capabilitiesOf(stores.twin)
      if (sessions === null || twin === null || entries === null) return
      await store.createUser(ADA_OF_DEV)
      await check(sessions, twin, store, entries)
    })
  }

  kept('a session is found as it was written, until it expires', async (sessions, twin) => {
    const data = { members: { cart: ['apples'] }, cookie: { path: '/shop' } }
    const times = { createdAt: NOW, seenAt: NOW, expiresAt: NOW + 60_000 }
    assert.equal(await sessions.insert(session('a', { data, userAgent: 'a browser' }), null), true)
    assert.equal(await sessions.insert(session('anonymous', { user: null }), null), true)

    const { status = null, presentClaims: _, ...found } = await openIn(twin, 'a') ?? {}

    assert.deepEqual(found, { user: ADA, data, ...times })
    if (status !== null) assert.deepEqual(status, { generation: 0, signedOutAt: 0, verifiedEmail: 'ada@example.com' })
    assert.deepEqual(await twin.find('anonymous', NOW), { user: null, data: null, ...times })
    assert.equal(await twin.find('a', NOW + 60_000), 'ended')
    assert.equal(await twin.find('b', NOW), null)
  })

  kept('the claims that are read with a session are those that the user has now', async (sessions, twin, store) => {
    const { provider, claims } = ADA_OF_DEV.link
    await sessions.insert(session('a', { user: { ...ADA, provider } }), null)
    await sessions.insert(session('other', { user: { ...ADA, provider: 'other' } }), null)
    await store.grant(userId, { role: 'author' })

    const { presentClaims } = await openIn(twin, 'a') ?? {}
    if (presentClaims === undefined) return
    assert.deepEqual(presentClaims(), { ...claims, ...ADA_OF_DEV.claims, role: 'author' })
    const ofOther = await openIn(twin, 'other')
    assert.equal(ofOther?.presentClaims?.(), null, 'there is no link by which the user signed in')
    await store.grant(userId, { role: 'editor' })
    assertHas((await openIn(twin, 'a'))?.presentClaims?.(), { role: 'editor' })
  })

  kept('a visitor is known by the entries that they own', async (sessions, twin, _store, entries) => {
    const entry = { hash: 'one', kind: 'sign-in', owner: 'visitor', content: {}, startedAt: NOW }
    await entries.put(entry, 8)
    await entries.put({ ...entry, hash: 'two', kind: 'mail-code', owner: 'other' }, 8)
    await entries.put({ ...entry, hash: 'three', owner: 'a' }, 8)
    await sessions.insert(session('a'), null)

    assert.equal(await twin.find('visitor', NOW + 600_000 - 1), 'visitor')
    assert.equal(await twin.find('visitor', NOW + 600_000), null)
    assert.equal(await twin.find('other', NOW), 'visitor')
    assert.ok(await openIn(twin, 'a'))
    await entries.take('one', 'sign-in', ['visitor'])
    assert.equal(await twin.find('visitor', NOW), null)
  })

  kept('a new user is admitted with their session or not at all', async (sessions, twin, store) => {
    const [newUser, other] = ['9e2a4a10-4b1c-4b0e-8f57-0d8a3f1c2b01', '9e2a4a10-4b1c-4b0e-8f57-0d8a3f1c2b02']
    for (const id of [newUser, other]) {
      const link = { provider: 'dev', subject: id, claims: { sub: id } }
      await store.createUser({ ...ADA_OF_DEV, userId: id, email: null, emailVerified: false, link, isNew: true })
    }
    const isNew = async (): Promise<boolean> => (await store.findUser({ userId: newUser }))?.isNew === true
    const ofNewUser = (idHash: string, more: Partial<NewSession> = {}): NewSession =>
      session(idHash, { user: { ...ADA, userId: newUser }, ...more })

    assert.equal(await sessions.insert(ofNewUser('a'), null), true)
    assert.equal(await isNew(), true, 'only a session that admits does')
    await sessions.end('a', SIGN_OUT)
    assert.equal(await twin.insert(ofNewUser('b', { admits: true }), 'a'), false)
    assert.equal(await isNew(), true, 'not by a sign-in that was refused')

    const outcome = await twin.insert(ofNewUser('c', { admits: true }), 'visitor')
    assert.ok(await openIn(sessions, 'c'))
    // A store that admits no users returns true, and the caller does.
    if (outcome !== 'admitted') return
    assert.equal(await isNew(), false)
    assert.equal((await store.findUser({ userId: other }))?.isNew, true)
    assert.equal(await sessions.insert(ofNewUser('d', { admits: true }), null), true, 'only one does')
    const ofOther = session('e', { user: { ...ADA, userId: other }, admits: true })
    assert.equal(await sessions.insert(ofOther, null), 'admitted')
    assertHas(await store.findUser({ userId: other }), { isNew: undefined, claims: ADA_OF_DEV.claims })
  })

  kept('of several sessions that replace an open one alone, the first is written', async (sessions, twin) => {
    await sessions.insert(session('a'), null)

    const names = ['b', 'c', 'd', 'e']
    const written = await Promise.all(names.map(async (name, index) =>
      (index % 2 === 0 ? sessions : twin).insert(session(name, { onlyOpen: true }), 'a')))
    assert.equal(written.filter(Boolean).length, 1)
    const open = await Promise.all(names.map(async name => await openIn(sessions, name) !== null))
    assert.deepEqual(open, written)
    assert.equal(await sessions.insert(session('f'), 'a'), true, 'another replaces it as ever')
    assert.equal(await sessions.insert(session('g', { onlyOpen: true }), 'f'), true)
    await sessions.end('g', { now: NOW, isSignOut: false })
    assert.equal(await twin.insert(session('h', { onlyOpen: true }), 'g'), false, 'one that has ended')
  })

  kept('a session is changed in part, and not any more once it has ended', async (sessions, twin) => {
    await sessions.insert(session('a'), null)

    await sessions.update('a', { data: { members: { cart: 1 } }, expiresAt: NOW + 90_000 })
    await twin.update('a', { user: { ...ADA, claims: { sub: userId } }, seenAt: NOW + 1 })
    assertHas(await openIn(twin, 'a'), {
      user: { ...ADA, claims: { sub: userId } },
      data: { members: { cart: 1 } },
      seenAt: NOW + 1,
      expiresAt: NOW + 90_000
    })
    await sessions.update('a', { data: null })
    assertHas(await openIn(twin, 'a'), { data: null })

    assertHas(await sessions.end('a', END), { userId, wasOpen: true, replacedBy: null })
    await twin.update('a', { data: { members: { cart: 2 } }, expiresAt: NOW + 900_000 })
    assert.equal(await twin.find('a', NOW), 'ended')
    assertHas(await twin.end('a', END), { userId, wasOpen: false, replacedBy: null })
    assert.equal(await twin.end('b', END), null)
  })

  kept('a session is replaced in one step, unless its user signed out', async (sessions, twin) => {
    await sessions.insert(session('a'), null)

    assert.equal(await twin.insert(session('b'), 'a'), true)
    assert.equal(await sessions.find('a', NOW), 'ended')
    assert.ok(await openIn(sessions, 'b'))
    assert.equal(await sessions.insert(session('c'), 'a'), true, 'a form that is sent twice')
    assert.ok(await openIn(twin, 'b'))

    assertHas(await sessions.end('a', SIGN_OUT), { userId, wasOpen: false, replacedBy: 'c' })
    assertHas(await twin.end('c', SIGN_OUT), { userId, wasOpen: true, replacedBy: 'b' })
    assert.equal(await twin.insert(session('d'), 'a'), false)
    assert.equal(await twin.find('d', NOW), null)
    assertHas(await sessions.end('a', SIGN_OUT), { replacedBy: 'c' }, 'what was refused has replaced nothing')
  })

  kept('a session that was never written is replaced too, and a late save does not open it', async (sessions, twin) => {
    assert.equal(await sessions.insert(session('a'), 'visitor'), true)

    assert.equal(await twin.find('visitor', NOW), 'ended')
    assert.equal(await twin.insert(session('visitor', { user: null, data: { members: { cart: 1 } } }), null), true)
    assert.equal(await twin.find('visitor', NOW), 'ended')
    assert.equal(await twin.insert(session('b'), 'visitor'), true)
    assert.deepEqual(await sessions.end('visitor', END), { userId: null, wasOpen: false, replacedBy: 'b' })
  })

  kept('a session that was never written is signed out too', async (sessions, twin, _store, entries) => {
    const owner = randomUUID()
    const entry = { hash: 'one', kind: 'sign-in', owner, content: {}, startedAt: NOW }
    await entries.put(entry, 8)
    await entries.take('one', 'sign-in', [owner])

    await sessions.end(owner, END)
    assert.equal(await twin.find(owner, NOW), null)
    assert.equal(await sessions.end(owner, SIGN_OUT), null)
    assertHas(await twin.end(owner, SIGN_OUT), { userId: null, wasOpen: false })

    assert.equal(await twin.insert(session('a'), owner), false)
    assert.equal(await sessions.find('a', NOW), null)
    await entries.put(entry, 8)
    assert.equal(await twin.find(owner, NOW), 'ended', 'also when an entry is written late')
  })

  kept('of a replacement and a sign-out at once, one sees the other', async (sessions, twin) => {
    await Promise.all(Array.from({ length: 40 }, async (_, round) => {
      const [before, after] = [randomUUID(), randomUUID()]
      if (round % 2 === 0) await sessions.insert(session(before), null)

      const [isReplaced, ended] = await Promise.all([
        sessions.insert(session(after), before), twin.end(before, SIGN_OUT)
      ])

      assert.equal(ended?.replacedBy ?? null, isReplaced ? after : null, `round ${round}`)
    }))
  })

  kept('a session is ended by one of ten calls at once, and replaced by each of ten', async (sessions, twin) => {
    const ten = Array.from({ length: 10 }, (_, index) => `${index}`)
    const inTurn = (index: number): StoredSessions => index % 2 === 0 ? sessions : twin
    await sessions.insert(session('a'), null)

    const ended = await Promise.all(ten.map((_, index) => inTurn(index).end('a', SIGN_OUT)))
    const replaced = await Promise.all(ten.map((id, index) => inTurn(index).insert(session(id), 'a visitor')))

    assert.equal(ended.filter(session => session?.wasOpen).length, 1)
    assert.deepEqual(replaced, Array(10).fill(true))
    for (const id of ten) assert.ok(await openIn(twin, id))
  })

  kept('the open sessions of a user are listed, the last used first', async (sessions, twin) => {
    await sessions.insert(session('a', { userAgent: 'first' }), null)
    await sessions.insert(session('b'), null)
    await sessions.insert(session('old', { user: { ...ADA, generation: 1 } }), null)
    await sessions.insert(session('ended'), null)
    await sessions.insert(session('expired', { expiresAt: NOW }), null)
    await sessions.end('ended', END)
    await sessions.update('a', { seenAt: NOW + 5 })

    const listed = await twin.ofUser(userId, 0, NOW)

    const times = { createdAt: NOW, seenAt: NOW + 5, expiresAt: NOW + 60_000 }
    assert.deepEqual(listed[0], { idHash: 'a', proofs: PROOFS, userAgent: 'first', ...times })
    assert.deepEqual(listed.map(({ idHash }) => idHash), ['a', 'b'])
  })

  kept('the open sessions are listed in which an impersonation shows a user', async (sessions, twin) => {
    const acting: Acting = {
      user: { userId: OTHER_ID, provider: 'dev', claims: { sub: OTHER_ID } },
      generation: 3,
      reason: 'a ticket',
      startedAt: NOW,
      until: NOW + 60_000,
      allowedAt: NOW
    }
    const user = { ...ADA, proofs: { ...PROOFS, acting } }
    for (const idHash of ['showing', 'ended']) await sessions.insert(session(idHash, { user }), null)
    await sessions.insert(session('own'), null)
    await sessions.end('ended', END)

    const listed = await twin.showing?.(OTHER_ID, NOW)
    if (listed === undefined) return
    const times = { createdAt: NOW, seenAt: NOW, expiresAt: NOW + 60_000 }
    assert.deepEqual(listed, [{ idHash: 'showing', userId, proofs: user.proofs, userAgent: null, ...times }])
    assert.deepEqual(await twin.showing?.(userId, NOW), [])
    assert.deepEqual((await openIn(twin, 'showing'))?.user, user)
  })

  rule('a sign-out removes what the session owns, another end does not', async open => {
    const { store, stores } = await open()
    const { sessions, entries } = capabilitiesOf(stores.store)
    const { entries: entriesOfTwin } = capabilitiesOf(stores.twin)
    if (sessions === null || entries === null || entriesOfTwin === null) return
    await store.createUser(ADA_OF_DEV)
    await sessions.insert(session('a'), null)
    for (const hash of ['one', 'other']) {
      await entries.put({ hash, kind: 'sign-in', owner: 'a', content: { hash }, startedAt: NOW }, 8)
    }

    await sessions.end('a', END)
    assert.deepEqual(await entriesOfTwin.take('one', 'sign-in', ['a']), { hash: 'one' })
    await sessions.end('a', SIGN_OUT)
    assert.equal(await entriesOfTwin.count('a', 'sign-in', 0), 0)
    assert.equal(await entriesOfTwin.take('other', 'sign-in', ['a']), null)
  })
}

function session (idHash: string, more: Partial<NewSession> = {}): NewSession {
  return { idHash, user: ADA, data: null, userAgent: null, createdAt: NOW, expiresAt: NOW + 60_000, ...more }
}

async function openIn (sessions: StoredSessions, idHash: string): Promise<FoundSession | null> {
  const found = await sessions.find(idHash, NOW)
  assert.ok(typeof found !== 'string')
  return found
}
