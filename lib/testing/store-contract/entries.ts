import assert from 'node:assert/strict'
import { type OneTimeEntries, type OneTimeEntry, capabilitiesOf } from '../../session/store.js'
import type { Rule } from './rule.js'

const NOW = 1_800_000_000_000
const MOST = 8
const AT_ONCE = 10

/** The optional member `entries`. */
export function entriesContract (rule: Rule): void {
  const kept = (name: string, check: (entries: OneTimeEntries, twin: OneTimeEntries) => Promise<void>): void => {
    rule(name, async open => {
      const { stores } = await open()
      const [entries, twin] = [capabilitiesOf(stores.store).entries, capabilitiesOf(stores.twin).entries]
      if (entries !== null && twin !== null) await check(entries, twin)
    })
  }

  kept('an entry is taken once, for its kind, by an owner that may', async (entries, twin) => {
    await entries.put(entry('a', { content: { nonce: 'n', list: [1] } }), MOST)

    assert.equal(await twin.take('a', 'sign-in', ['another', 'third']), null)
    assert.equal(await twin.take('a', 'sign-in', []), null)
    assert.equal(await twin.take('a', 'challenge', ['owner']), null)
    assert.equal(await twin.take('b', 'sign-in', ['owner']), null)
    const taken = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
      (index % 2 === 0 ? entries : twin).take('a', 'sign-in', ['another', 'owner'])))

    assert.deepEqual(taken.filter(content => content !== null), [{ nonce: 'n', list: [1] }])
  })

  kept('it is known when an entry was taken, and by whose', async (entries, twin) => {
    const { hash, kind, owner } = entry('a')
    await entries.put(entry('a'), MOST)
    assert.equal(await twin.takenAt({ hash, kind, owner }), null)
    const before = Date.now()
    await entries.take(hash, kind, ['another', owner])

    assert.ok(Number(await twin.takenAt({ hash, kind, owner })) >= before)
    assert.equal(await entries.takenAt({ hash, kind, owner: 'another' }), null)
    assert.equal(await entries.takenAt({ hash, kind: 'challenge', owner }), null)
    assert.equal(await entries.count(owner, kind, 0), 0)
    assert.equal(await entries.attempt({ hash, kind, owner }, 1), null)
  })

  kept('an entry is found by its owner, for its kind, as often as they look', async (entries, twin) => {
    const { hash, kind, owner, content } = entry('a', { content: { nonce: 'n' } })
    await entries.put(entry('a', { content }), MOST)

    for (const found of [entries, twin, twin]) assert.deepEqual(await found.find({ hash, kind, owner }), content)
    assert.equal(await twin.find({ hash, kind, owner: 'another' }), null)
    assert.equal(await twin.find({ hash, kind: 'challenge', owner }), null)
    assert.equal(await twin.find({ hash: 'b', kind, owner }), null)
    assert.deepEqual(await twin.attempt({ hash, kind, owner }, 1), content, 'that is no attempt')
    await entries.take(hash, kind, [owner])
    assert.equal(await twin.find({ hash, kind, owner }), null)
  })

  kept('an entry replaces the one with its hash, and the attempts at it', async (entries, twin) => {
    const [first, { hash, kind, owner }] = [entry('a', { content: { code: 1 } }), entry('a')]
    await entries.put(first, 2)
    await entries.put(entry('b'), 2)
    assert.deepEqual(await entries.attempt({ hash, kind, owner }, 1), { code: 1 })

    await twin.put({ ...first, content: { code: 2 }, startedAt: NOW + 1 }, 2)
    assert.deepEqual(await entries.attempt({ hash, kind, owner }, 1), { code: 2 })
    assert.equal(await entries.count(owner, kind, NOW), 1)
    assert.ok(await entries.take('b', kind, [owner]), 'it is one of two as before')

    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
      (index % 2 === 0 ? entries : twin).put({ ...first, kind: 'challenge', owner: 'another' }, 1)))
    assert.equal(await twin.take(hash, kind, [owner]), null)
    assert.deepEqual(await twin.take(hash, 'challenge', ['another']), { code: 1 })
    assert.equal(await twin.find({ hash, kind: 'challenge', owner: 'another' }), null)
  })

  kept('an owner has entries of a kind since a time', async (entries, twin) => {
    await entries.put(entry('a'), MOST)

    assert.equal(await twin.count('owner', 'sign-in', NOW - 1), 1)
    assert.equal(await twin.count('owner', 'sign-in', NOW), 0)
    assert.equal(await twin.count('owner', 'challenge', NOW - 1), 0)
    assert.equal(await twin.count('another', 'sign-in', NOW - 1), 0)
    await entries.take('a', 'sign-in', ['owner'])
    assert.equal(await twin.count('owner', 'sign-in', NOW - 1), 0)
  })

  kept('of too many entries of an owner and kind, the oldest are removed', async (entries, twin) => {
    await entries.put(entry('challenge', { kind: 'challenge' }), 1)
    await entries.put(entry('of another', { owner: 'another' }), 1)
    for (let count = 0; count < 10; count++) await twin.put(entry(`${count}`, { startedAt: NOW + count }), MOST)

    for (const gone of ['0', '1']) assert.equal(await entries.take(gone, 'sign-in', ['owner']), null)
    for (const left of ['2', '9']) assert.ok(await entries.take(left, 'sign-in', ['owner']))
    assert.ok(await entries.take('challenge', 'challenge', ['owner']))
    assert.ok(await entries.take('of another', 'sign-in', ['another']))
    await entries.put(entry('latest', { startedAt: NOW + 8 }), 1)
    assert.equal(await entries.take('8', 'sign-in', ['owner']), null)
    assert.ok(await entries.take('latest', 'sign-in', ['owner']), 'of the same millisecond too')
  })

  kept('as many attempts at an entry as may be made return it, and it stays', async (entries, twin) => {
    const { hash, kind, owner, content } = entry('a', { content: { secret: 's' } })
    await entries.put(entry('a', { content }), MOST)

    assert.equal(await twin.attempt({ hash, kind, owner: 'another' }, 5), null)
    assert.equal(await twin.attempt({ hash, kind: 'challenge', owner }, 5), null)
    const found = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) =>
      (index % 2 === 0 ? entries : twin).attempt({ hash, kind, owner }, 5)))

    assert.deepEqual(found.filter(content => content !== null), Array(5).fill(content))
    assert.deepEqual(await twin.take(hash, kind, [owner]), content)
    assert.equal(await twin.attempt({ hash, kind, owner }, 100), null)
  })
}

function entry (hash: string, more: Partial<OneTimeEntry> = {}): OneTimeEntry {
  return { hash, kind: 'sign-in', owner: 'owner', content: {}, startedAt: NOW, ...more }
}
