import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { availableParallelism, getPriority } from 'node:os'
import { join } from 'node:path'
import workerThreads, { type Worker, type WorkerOptions } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { hash, verify } from '../../lib/local/hash-thread.js'
import { hashThreads } from '../../lib/local/hash-threads.js'

const COST = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const TOO_CHEAP = { ...COST, memoryCost: 1 }
const BUSY = { name: 'AuthError', code: 'busy', statusCode: 503, retryAfter: 3 }

/** What the threads take from all who come at the same moment: one is computed by each and one at hand, and 256 wait. */
const CAPACITY = availableParallelism() * 2 + 256

const started: Worker[] = []
process.on('worker', worker => { started.push(worker) })

const hashNow = async () => hashThreads.hash({ password: 'correct horse', cost: COST })

t.test('when a thread cannot start, nobody waits for it, and for the next password another one is started', async t => {
  const { Worker } = workerThreads
  const failing = t.intercept(workerThreads, 'Worker', {
    value: class extends Worker {
      constructor (filename: string, options: WorkerOptions) {
        super(filename, { ...options, execArgv: ['--import', 'data:text/javascript,throw new Error("no thread")'] })
      }
    }
  })

  const attempts = await Promise.allSettled(Array.from({ length: CAPACITY }, hashNow))
  failing.restore()

  t.ok(attempts.every(({ status }) => status === 'rejected'))
  t.match(await hashNow(), /^\$argon2id\$/)
})

t.test('attack 42: however many passwords come, at most one thread per core computes', async t => {
  await Promise.all(Array.from({ length: CAPACITY }, hashNow))

  t.equal(started.filter(({ threadId }) => threadId !== -1).length, availableParallelism())
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

t.test('what the threads compute', async t => {
  t.equal(verify({ password: 'correct horse', hash: hash({ password: 'correct horse', cost: COST }) }), true)
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
