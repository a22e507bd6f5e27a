import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { type Attempt, type AttemptCounter, capabilitiesOf } from '../../session/store.js'
import type { Rule } from './rule.js'

const HOUR_MS = 60 * 60_000

/** The optional group `SharedCounts`. */
export function attemptsContract (rule: Rule): void {
  const counting = (name: string, check: (counts: AttemptCounter, twin: AttemptCounter) => Promise<void>): void => {
    rule(name, async open => {
      const { stores: { store, twin } } = await open()
      const [counts, countsOfTwin] = [capabilitiesOf(store).attempts, capabilitiesOf(twin).attempts]
      if (counts !== null && countsOfTwin !== null) await check(counts, countsOfTwin)
    })
  }

  counting('of many attempts at once as many are within a limit as it allows', async (counts, twin) => {
    const limit = newLimit({ max: 10 })

    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => {
      return (index % 2 === 0 ? counts : twin).count([limit])
    }))

    assert.equal(outcomes.filter(outcome => outcome === null).length, 10)
  })

  counting('an attempt beyond a limit hears for how long, and later limits do not count it', async (counts, twin) => {
    const [first, second] = [newLimit({ max: 1 }), newLimit({ max: 2 })]
    assert.equal(await counts.count([first, second]), null)

    for (const one of [counts, twin]) {
      const exceeded = await one.count([first, second])
      assert.equal(exceeded?.key, first.key)
      assert.ok(exceeded.wait > HOUR_MS / 2 && exceeded.wait <= HOUR_MS, `${exceeded.wait} of ${HOUR_MS} milliseconds`)
    }

    assert.equal(await twin.count([second]), null)
    assert.equal((await counts.count([newLimit(), second]))?.key, second.key)
  })

  counting('a count starts again when its time is over', async (counts, twin) => {
    const limit = newLimit({ max: 1, timeWindow: 100 })
    assert.equal(await counts.count([limit]), null)

    const exceeded = await twin.count([limit])
    await setTimeout((exceeded?.wait ?? 0) + 10)

    assert.equal(await counts.count([limit]), null)
  })
}

function newLimit (limit: Partial<Attempt> = {}): Attempt {
  return { key: randomUUID(), max: 10, timeWindow: HOUR_MS, ...limit }
}
