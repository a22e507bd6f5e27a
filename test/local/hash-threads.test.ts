import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import workerThreads, { MessageChannel, type Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { hashThreads } from '../../lib/local/hash-threads.js'
import { CAPACITY, THREADS } from '../helpers/hash-threads.js'

const COST = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const TOO_CHEAP = { ...COST, memoryCost: 1 }
const BUSY = { name: 'AuthError', code: 'busy', statusCode: 503, retryAfter: 3 }

const UNAVAILABLE = { name: 'AuthError', code: 'unavailable', statusCode: 503 }
const PHC = /^\$argon2id\$v=19\$m=8,t=1,p=1\$/

const started: Worker[] = []
process.on('worker', worker => { started.push(worker) })

const hashNow = async () => hashThreads.hash({ password: 'correct horse', cost: COST })

t.test('when no thread can be started, nobody waits for one, and with the next password it is tried again', async t => {
  const failing = t.intercept(workerThreads, 'Worker', { value: class { constructor () { throw new Error('no thread') } } })
  syncBuiltinESMExports()

  const attempts = await Promise.allSettled(Array.from({ length: CAPACITY + 300 }, hashNow))
  failing.restore()
  syncBuiltinESMExports()

  for (const attempt of attempts) t.match(attempt, { status: 'rejected', reason: UNAVAILABLE })
  t.match(await hashNow(), PHC)
})

t.test('when only some threads can be started, they do all the work', async t => {
  const failing = t.intercept(workerThreads, 'Worker', { value: class { constructor () { throw new Error('no thread') } } })
  syncBuiltinESMExports()

  const hashes = await Promise.all(Array.from({ length: 2 + 256 }, hashNow))
  const { reason } = (await Promise.allSettled(Array.from({ length: 2 + 256 + 1 }, hashNow))).at(-1) as PromiseRejectedResult
  failing.restore()
  syncBuiltinESMExports()

  t.ok(hashes.every(hash => PHC.test(hash)))
  t.match(reason, BUSY)
})

t.test('a thread that ends takes its own passwords with it, the last one also those that wait for it; then another one is started', async t => {
  await Promise.all(Array.from({ length: CAPACITY }, hashNow))
  const running = started.filter(({ threadId }) => threadId !== -1)

  const settled = Promise.allSettled(Array.from({ length: CAPACITY }, hashNow))
  for (const worker of running) await worker.terminate()
  const attempts = await settled

  t.ok(attempts.some(({ status }) => status === 'rejected'))
  for (const attempt of attempts) t.match(attempt, attempt.status === 'fulfilled' ? { value: PHC } : { reason: UNAVAILABLE })
  t.match(await hashNow(), PHC)
})

t.test('a thread whose program fails is no end of the process', async t => {
  const { Worker } = workerThreads
  for (const worker of started) await worker.terminate()
  const failing = t.intercept(workerThreads, 'Worker', {
    value: class extends Worker {
      constructor () { super('throw new Error("no program")', { eval: true }) }
    }
  })
  syncBuiltinESMExports()

  const attempt = await Promise.allSettled([hashNow(), hashNow()])
  failing.restore()
  syncBuiltinESMExports()

  for (const { status } of attempt) t.equal(status, 'rejected')
  t.match(await hashNow(), PHC)
})

t.test('attack 42: however many passwords come, at most one thread per core computes', async t => {
  await Promise.all(Array.from({ length: CAPACITY }, hashNow))

  t.equal(started.filter(({ threadId }) => threadId !== -1).length, THREADS)
})

t.test('a password matches the hash that was made of it, no other does', async t => {
  const hash = await hashNow()

  t.equal(await hashThreads.verify({ password: 'correct horse', hash }), true)
  t.equal(await hashThreads.verify({ password: 'wrong horse', hash }), false)
})

t.test('attack 42: of all who come at once those are turned away as busy for whom there is no room, and then there is room again', async t => {
  for (let round = 0; round < 2; round++) {
    const attempts = await Promise.allSettled(Array.from({ length: CAPACITY + 10 }, hashNow))

    t.ok(attempts.slice(0, CAPACITY).every(({ status }) => status === 'fulfilled'))
    for (const attempt of attempts.slice(CAPACITY)) t.match(attempt, { status: 'rejected', reason: BUSY })
  }
})

t.test('a computation that fails tells so, and gives its place back', async t => {
  const failed = await Promise.allSettled(Array.from({ length: CAPACITY }, () => hashThreads.hash({ password: 'correct horse', cost: TOO_CHEAP })))

  for (const attempt of failed) t.match(attempt, { status: 'rejected', reason: { message: /Memory cost/ } })
  await t.rejects(hashThreads.verify({ password: 'correct horse', hash: 'garbage' }), { message: /Decoding failed/ })
  t.match(await hashNow(), /^\$argon2id\$/)
})

t.test('attack 58: passwords do not wait for files', { timeout: 20_000 }, async t => {
  await hashNow()
  const release = occupyNodeThreads(t)

  const hash = await hashNow()
  t.equal(await hashThreads.verify({ password: 'correct horse', hash }), true)
  await release()
})

t.test('attack 58: the threads come after the one that answers requests', { skip: process.platform !== 'linux' && 'elsewhere they have no priority of their own' }, async t => {
  const own = getPriority()
  await hashNow()

  const later = readdirSync('/proc/self/task').filter(id => getPriority(Number(id)) === Math.min(own + 10, 19))
  t.ok(later.length > 0 && !later.includes(String(process.pid)))
})

t.test('a process that has hashed a password ends by itself', async t => {
  const program = join(t.testdir({
    'program.mjs': `
      import { hashThreads } from ${JSON.stringify(new URL('../../lib/local/hash-threads.js', import.meta.url))}
      console.log(await hashThreads.hash({ password: 'correct horse', cost: ${JSON.stringify(COST)} }))
    `
  }), 'program.mjs')

  t.match(execFileSync(process.execPath, [...process.execArgv, program], { encoding: 'utf8', timeout: 20_000 }), /^\$argon2id\$/)
})

t.test('what a thread answers', async t => {
  const { port1: port, port2: parentPort } = new MessageChannel()
  t.teardown(() => port.close())
  const priorities: number[] = []
  await t.mockImport('../../lib/local/hash-thread.js', {
    'node:os': { getPriority: () => 15, setPriority: (priority: number) => priorities.push(priority) },
    'node:worker_threads': { parentPort }
  })
  const answerTo = async (task: object) => {
    port.postMessage(task)
    return (await once(port, 'message'))[0]
  }

  const { value: hash } = await answerTo({ password: 'correct horse', cost: COST })
  t.match(hash, PHC)
  t.strictSame(await answerTo({ password: 'correct horse', hash }), { value: true })
  t.strictSame(await answerTo({ password: 'wrong horse', hash }), { value: false })
  t.match(await answerTo({ password: 'correct horse', hash: 'garbage' }), { error: { message: /Decoding failed/ } })
  if (process.platform === 'linux') t.strictSame(priorities, [19], 'it has the lowest priority at most')
})

/** Keeps the threads of Node.js waiting (each opens a pipe that nobody writes to) until what it returns is called. */
function occupyNodeThreads (t: Test): () => Promise<void> {
  const folder = t.testdir()
  const pipes = Array.from({ length: Number(process.env.UV_THREADPOOL_SIZE ?? 4) }, (_, index) => join(folder, `pipe-${index}`))
  execFileSync('mkfifo', pipes)
  const opened = pipes.map(async pipe => (await open(pipe, 'r')).close())
  return async () => {
    for (const pipe of pipes) closeSync(openSync(pipe, 'w'))
    await Promise.all(opened)
  }
}
