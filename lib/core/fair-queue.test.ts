import t from 'tap'
import { type Caller, FairQueue } from './fair-queue.js'
import { type Deferred, deferred } from '../../test/helpers/deferred.js'

const BUSY = { name: 'AuthError', code: 'busy', statusCode: 503, retryAfter: 7 }

/** A queue whose work ends when the test says so: names are noted when their work begins. */
function queueOf (limits: { running: number, waiting: number }) {
  const queue = new FairQueue({ ...limits, retryAfter: 7 })
  const begun: string[] = []
  const ends: Deferred[] = []
  const settled = async () => new Promise(resolve => setImmediate(resolve))
  const endFirst = async () => {
    ends.shift()?.resolve()
    await settled()
  }
  return {
    queue,
    begun,
    settled,
    async run (name: string, caller?: Caller): Promise<string> {
      return queue.run(async () => {
        begun.push(name)
        const end = deferred()
        ends.push(end)
        await end.promise
        return name
      }, caller)
    },
    /** Ends the work that began first, and lets what follows begin. */
    endFirst,
    async endAll (): Promise<void> {
      await settled()
      while (ends.length > 0) await endFirst()
    }
  }
}

t.test('so much work runs at a time, the rest waits in its order', async t => {
  const { run, begun, settled, endFirst, endAll } = queueOf({ running: 2, waiting: 10 })
  const all = Promise.all(['1', '2', '3', '4'].map(async name => run(name)))

  await settled()
  t.strictSame(begun, ['1', '2'])
  await endFirst()
  t.strictSame(begun, ['1', '2', '3'])
  await endAll()
  t.strictSame(await all, ['1', '2', '3', '4'])
})

t.test('work for which no place is left is refused as busy, and then there is room again', async t => {
  const { queue, run, endAll } = queueOf({ running: 1, waiting: 2 })

  for (let round = 0; round < 2; round++) {
    const taken = Promise.all([run('1'), run('2'), run('3')])
    t.match(queue.refusalFor(), BUSY)
    await t.rejects(run('4'), BUSY)
    await endAll()
    await taken
    t.equal(queue.refusalFor(), null)
  }
})

t.test('work that fails gives its place back', async t => {
  const { queue, run, endAll } = queueOf({ running: 1, waiting: 1 })

  await t.rejects(queue.run(async () => { throw new Error('failed') }), { message: 'failed' })
  const next = run('next')
  await endAll()
  t.equal(await next, 'next')
})

t.test('addresses take turns: the burst of one leaves another its turn', async t => {
  const { run, begun, endAll } = queueOf({ running: 1, waiting: 10 })
  const all = Promise.all([
    ...['a1', 'a2', 'a3', 'a4'].map(async name => run(name, { address: 'a' })),
    ...['b1', 'b2'].map(async name => run(name, { address: 'b' })),
    run('c1', { address: 'c' })
  ])

  await endAll()
  await all
  t.strictSame(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
})

t.test('an address that has had its turn comes after those that wait', async t => {
  const { run, begun, settled, endFirst, endAll } = queueOf({ running: 1, waiting: 10 })
  const all = [run('a1', { address: 'a' }), run('a2', { address: 'a' }), run('b1', { address: 'b' })]
  await settled()
  await endFirst()
  all.push(run('a3', { address: 'a' }))

  await endAll()
  await Promise.all(all)
  t.strictSame(begun, ['a1', 'a2', 'b1', 'a3'])
})

t.test('when no place is left, a caller with a shorter line takes the last place of the longest one', async t => {
  const { queue, run, begun, endAll } = queueOf({ running: 1, waiting: 4 })
  const burst = ['a1', 'a2', 'a3'].map(async name => run(name, { address: 'a' }))
  const lastOfBurst = ['a4', 'a5'].map(async name => t.rejects(run(name, { address: 'a' }), BUSY))

  t.match(queue.refusalFor('a'), BUSY)
  t.equal(queue.refusalFor('b'), null)
  const others = ['b1', 'b2'].map(async name => run(name, { address: 'b' }))
  await Promise.all(lastOfBurst)
  t.match(queue.refusalFor('b'), BUSY, 'the lines are of one length now')
  await t.rejects(run('b3', { address: 'b' }), BUSY)
  t.equal(queue.refusalFor('c'), null)

  await endAll()
  t.strictSame(await Promise.all([...burst, ...others]), ['a1', 'a2', 'a3', 'b1', 'b2'])
  t.strictSame(begun, ['a1', 'a2', 'b1', 'a3', 'b2'])
})

t.test('work that waits is dropped when its signal aborts, and its place is free', async t => {
  const { queue, run, begun, endAll } = queueOf({ running: 1, waiting: 2 })
  const gone = new AbortController()
  const first = run('1')
  const dropped = [run('2', { signal: gone.signal }), run('3', { address: 'a', signal: gone.signal })]
  t.match(queue.refusalFor(), BUSY)

  gone.abort(new Error('the client went away'))

  for (const work of dropped) await t.rejects(work, { message: 'the client went away' })
  const next = [run('4'), run('5')]
  await endAll()
  await Promise.all([first, ...next])
  t.strictSame(begun, ['1', '4', '5'])
})

t.test('work whose signal has aborted before does not begin', async t => {
  const { run, begun } = queueOf({ running: 1, waiting: 2 })

  await t.rejects(run('1', { signal: AbortSignal.abort(new Error('too late')) }), { message: 'too late' })
  t.strictSame(begun, [])
})

t.test('work that has begun is done, whatever its signal says', async t => {
  const { run, settled, endAll } = queueOf({ running: 1, waiting: 2 })
  const gone = new AbortController()
  const first = run('1', { signal: gone.signal })
  await settled()

  gone.abort()
  const next = run('2')
  await endAll()

  t.strictSame(await Promise.all([first, next]), ['1', '2'])
})
