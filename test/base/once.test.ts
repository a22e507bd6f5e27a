import t from 'tap'
import { Once } from '../../lib/base/concurrency.js'

t.test('work is done when it is first asked for, once for all who ask', async t => {
  let runs = 0
  const once = new Once(async () => ++runs)
  t.equal(once.attempt, undefined)
  t.equal(runs, 0)

  t.strictSame(await Promise.all([once.done(), once.done()]), [1, 1])
  t.equal(await once.done(), 1)
  t.equal(await once.attempt, 1)
})

t.test('a failure is that of all who waited, and of no later caller', async t => {
  let runs = 0
  const once = new Once(async () => {
    if (++runs === 1) throw new Error('not yet')
    return runs
  })

  await Promise.all([t.rejects(once.done(), { message: 'not yet' }), t.rejects(once.done(), { message: 'not yet' })])
  t.equal(once.attempt, undefined)

  t.equal(await once.done(), 2)
})
