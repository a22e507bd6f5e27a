import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DEFAULT_ARGON2_COST, hashing } from './hashing.js'
import { CAPACITY } from '../../../test/helpers/hashing.js'

const COST = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const TOO_CHEAP = { ...COST, memoryCost: 1 }
const BUSY = { name: 'AuthError', code: 'busy', statusCode: 503, retryAfter: 3 }
const PHC = /^\$argon2id\$v=19\$m=8,t=1,p=1\$/

const hashNow = async () => hashing.hash({ password: 'correct horse', cost: COST })

t.test('a password matches the hash that was made of it, no other does', async t => {
  const hash = await hashNow()

  t.match(hash, PHC)
  t.equal(await hashing.verify({ password: 'correct horse', hash }), true)
  t.equal(await hashing.verify({ password: 'wrong horse', hash }), false)
})

t.test('attack 42: hashes for which there is no room are refused as busy, and then there is room again', async t => {
  for (let round = 0; round < 2; round++) {
    const attempts = await Promise.allSettled(Array.from({ length: CAPACITY + 10 }, hashNow))

    t.ok(attempts.slice(0, CAPACITY).every(({ status }) => status === 'fulfilled'))
    for (const attempt of attempts.slice(CAPACITY)) t.match(attempt, { status: 'rejected', reason: BUSY })
  }
})

t.test('a computation that fails rejects, and gives its place back', async t => {
  const failed = await Promise.allSettled(Array.from({ length: CAPACITY }, () => hashing.hash({ password: 'correct horse', cost: TOO_CHEAP })))

  for (const attempt of failed) t.match(attempt, { status: 'rejected', reason: { message: /Memory cost/ } })
  await t.rejects(hashing.verify({ password: 'correct horse', hash: 'garbage' }), { message: /Decoding failed/ })
  t.match(await hashNow(), PHC)
})

t.test('attack 58: files do not wait for passwords: a thread of the pool stays free', async t => {
  let hashed = 0
  const hashes = Array.from({ length: 30 }, async () => {
    await hashing.hash({ password: 'correct horse', cost: DEFAULT_ARGON2_COST })
    hashed++
  })
  await new Promise(resolve => setImmediate(resolve))

  await readFile(fileURLToPath(import.meta.url))
  const hashedBefore = hashed

  await Promise.all(hashes)
  t.ok(hashedBefore < 15, `${hashedBefore} of 30 passwords were hashed before the file was read`)
})

t.test('one hash more runs than there are cores, and one less than the pool has threads', async t => {
  const program = join(t.testdir({
    'program.mjs': `
      import { RUNNING } from ${JSON.stringify(new URL('./hashing.js', import.meta.url))}
      console.log(RUNNING)
    `
  }), 'program.mjs')
  const runningWith = (size: string) => Number(execFileSync(
    process.execPath,
    [...process.execArgv, program],
    { encoding: 'utf8', env: { ...process.env, UV_THREADPOOL_SIZE: size } }
  ))
  const most = Math.min(availableParallelism() + 1, 8)

  t.strictSame(['1', '2', '100', 'many', ''].map(runningWith), [1, 1, most, 1, 1])
})

t.test('a process that has hashed a password ends by itself', async t => {
  const program = join(t.testdir({
    'program.mjs': `
      import { hashing } from ${JSON.stringify(new URL('./hashing.js', import.meta.url))}
      console.log(await hashing.hash({ password: 'correct horse', cost: ${JSON.stringify(COST)} }))
    `
  }), 'program.mjs')

  t.match(execFileSync(process.execPath, [...process.execArgv, program], { encoding: 'utf8', timeout: 20_000 }), PHC)
})
