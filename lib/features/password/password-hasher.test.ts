import { hash as argon2Hash } from '@node-rs/argon2'
import t from 'tap'
import { DEFAULT_ARGON2_COST, HIGHEST_ARGON2_COST, PasswordHasher, hashing, normalizePassword } from './hashing.js'
import { CAPACITY } from '../../../test/helpers/hashing.js'

const verifications = t.capture(hashing, 'verify', hashing.verify)
const hashings = t.capture(hashing, 'hash', hashing.hash)

// The enums of @node-rs/argon2 exist in its types only.
const ARGON2D = 0
const ARGON2I = 1
const VERSION_16 = 0

const COST = { memoryCost: 8, timeCost: 1, parallelism: 1 }
const PHC = /^\$argon2id\$v=19\$m=8,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/
const RIGHT = { matches: true, outdated: false }
const WRONG = { matches: false, outdated: false }
const BUSY = { name: 'AuthError', code: 'busy', statusCode: 503, retryAfter: 3 }

t.test('a password is hashed with Argon2id at the cost that was configured, with a new salt each time', async t => {
  const hasher = new PasswordHasher(COST)

  const [first, second] = await Promise.all([hasher.hash('correct horse'), hasher.hash('correct horse')])

  t.match(first, PHC)
  t.match(second, PHC)
  t.not(first, second)
  t.match(await new PasswordHasher({ memoryCost: 64, timeCost: 3, parallelism: 2 }).hash('correct horse'), /^\$argon2id\$v=19\$m=64,t=3,p=2\$/)
  t.match(await new PasswordHasher(DEFAULT_ARGON2_COST).hash('correct horse'), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
})

t.test('the right password matches, no other does', async t => {
  const hasher = new PasswordHasher(COST)
  const hash = await hasher.hash('correct horse')

  t.strictSame(await hasher.verify(hash, 'correct horse'), RIGHT)
  for (const wrong of ['correct horsE', 'correct hors', 'correct horse ', 'wrong horse', '', hash]) {
    t.strictSame(await hasher.verify(hash, wrong), WRONG)
  }
})

t.test('attack 42: a password that another keyboard composed is the same one (NFKC)', async t => {
  const hasher = new PasswordHasher(COST)
  const twins = [
    ['\u00c5ngström', '\u212bngström', 'A\u030angstro\u0308m'],
    ['password', 'ｐａｓｓｗｏｒｄ'],
    ['final office', '\ufb01nal o\ufb03ce'],
    ['\uac01\uac01\uac01', '\u1100\u1161\u11a8\u1100\u1161\u11a8\u1100\u1161\u11a8'],
    ['ten chars 1²', 'ten chars 12']
  ]

  for (const spellings of twins) {
    for (const chosen of spellings) {
      const hash = await hasher.hash(chosen)
      for (const typed of spellings) t.strictSame(await hasher.verify(hash, typed), RIGHT)
    }
  }
})

t.test('attack 42: passwords of 8 to 1024 bytes are taken', async t => {
  const hasher = new PasswordHasher(COST)
  const passwords = [
    'a'.repeat(8), 'é'.repeat(4), '😀😀', 'a'.repeat(1024), '😀'.repeat(256), 'ａ'.repeat(1024), 'e\u0301'.repeat(512),
    '\u{1d41a}'.repeat(1024)
  ]

  for (const password of passwords) t.strictSame(await hasher.verify(await hasher.hash(password), password), RIGHT)
})

t.test('attack 42: shorter and longer passwords are refused, counted after they were normalised', async t => {
  const hasher = new PasswordHasher(COST)
  const passwords = [
    '', 'a'.repeat(7), 'é'.repeat(3), 'ａ'.repeat(7), 'e\u0301'.repeat(3), 'a'.repeat(1025), `${'é'.repeat(512)}a`,
    '\ufdfa'.repeat(100), 'ａ'.repeat(1025), 'a'.repeat(1_000_000)
  ]

  for (const password of passwords) {
    await t.rejects(hasher.hash(password), { name: 'AuthError', code: 'weak_password', statusCode: 400 })
    t.strictSame(await hasher.verify(await hasher.hash('correct horse'), password), WRONG)
  }
})

t.test('attack 42: a very long password computes nothing, and does not wait in the queue', async t => {
  const hasher = new PasswordHasher(COST)
  const hash = await hasher.hash('correct horse')
  verifications()

  for (const stored of [hash, null]) t.strictSame(await hasher.verify(stored, 'a'.repeat(4097)), WRONG)
  t.strictSame(verifications(), [])
  await hasher.verify(hash, 'a'.repeat(4096))
  t.equal(verifications().length, 1)
})

t.test('attack 42: half a surrogate pair is refused, as all of them would hash alike', async t => {
  const hasher = new PasswordHasher(COST)
  const hash = await hasher.hash('password \ufffd')

  for (const password of ['password \ud800', '\udc00 password', 'pass\ud83dword']) {
    await t.rejects(hasher.hash(password), { code: 'weak_password' })
    t.strictSame(await hasher.verify(hash, password), WRONG)
  }
})

t.test('attack 42: nothing is cut, trimmed or folded', async t => {
  const hasher = new PasswordHasher(COST)
  const different = [
    'password', 'password\u0000', 'password\u0000tail', 'password\u0000tale', '\u0000password', ' password',
    'password ', 'password\n', 'Password', 'passwörd', 'password\u200b', 'a'.repeat(73), 'a'.repeat(74)
  ]

  for (const chosen of different) {
    const hash = await hasher.hash(chosen)
    for (const typed of different) t.equal((await hasher.verify(hash, typed)).matches, chosen === typed)
  }
})

t.test('a hash of another cost matches and is outdated', async t => {
  const hasher = new PasswordHasher({ memoryCost: 64, timeCost: 2, parallelism: 2 })

  for (const other of [{ memoryCost: 72 }, { memoryCost: 32 }, { timeCost: 3 }, { timeCost: 1 }, { parallelism: 1 }, { parallelism: 4 }]) {
    const hash = await new PasswordHasher({ memoryCost: 64, timeCost: 2, parallelism: 2, ...other }).hash('correct horse')

    t.strictSame(await hasher.verify(hash, 'correct horse'), { matches: true, outdated: true })
    t.equal((await hasher.verify(hash, 'wrong horse')).matches, false)
  }
})

t.test('a hash of another kind of Argon2 matches and is outdated', async t => {
  const hasher = new PasswordHasher(COST)

  for (const kind of [{ algorithm: ARGON2I }, { algorithm: ARGON2D }, { version: VERSION_16 }]) {
    const hash = await argon2Hash('correct horse', { ...COST, ...kind })

    t.strictSame(await hasher.verify(hash, 'correct horse'), { matches: true, outdated: true }, hash)
    t.equal((await hasher.verify(hash, 'wrong horse')).matches, false)
  }
})

const SALT = 'c29tZSBzYWx0IG9mIDE2Yg'
const OUTPUT = 'K5mS0pLqjFHdLB4wXH2zqmG6Gg6o7pRrPDd2IG5rHHQ'

t.test('attack 42: an unreadable stored hash matches nothing, does not throw, and costs one verification', async t => {
  const hasher = new PasswordHasher(COST)
  await hasher.verify(null, 'correct horse')
  const hashes = [
    '', ' ', 'garbage', 'correct horse', '$', '$$$$$', 'null', '\u0000', 'a'.repeat(100_000),
    '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy', '$2b$10$', '$scrypt$ln=4,r=8,p=1$c2FsdA$aGFzaA',
    '$pbkdf2-sha256$29000$c2FsdA$aGFzaA', '$1$salt$hash',
    '$argon2id$', '$argon2id$v=19$m=8,t=1,p=1', `$argon2id$v=19$m=8,t=1,p=1$${SALT}`,
    `$argon2id$v=19$m=8,t=1,p=1$${SALT}$`, `$argon2id$v=19$m=8,t=1,p=1$$${OUTPUT}`, '$argon2id$v=19$m=8,t=1,p=1$$',
    `$argon2id$v=19$${SALT}$${OUTPUT}`, `$argon2xx$v=19$m=8,t=1,p=1$${SALT}$${OUTPUT}`,
    `$argon2id$v=99$m=8,t=1,p=1$${SALT}$${OUTPUT}`, `$argon2id$v=19$m=8,t=1,p=1$AA$${OUTPUT}`,
    `$argon2id$v=19$m=8,t=1,p=1$${SALT}$AA`,
    `$argon2id$v=19$m=8,t=1,p=1$${SALT}$${OUTPUT}\n`, ` $argon2id$v=19$m=8,t=1,p=1$${SALT}$${OUTPUT}`, `$argon2id$v=19$m=8,t=1,p=1$${SALT}$${OUTPUT}$more`,
    `$argon2id$v=19$m=0,t=1,p=1$${SALT}$${OUTPUT}`, `$argon2id$v=19$m=7,t=1,p=1$${SALT}$${OUTPUT}`,
    `$argon2id$v=19$m=8,t=0,p=1$${SALT}$${OUTPUT}`, `$argon2id$v=19$m=8,t=1,p=0$${SALT}$${OUTPUT}`,
    `$argon2id$v=19$m=-8,t=1,p=1$${SALT}$${OUTPUT}`
  ]

  for (const hash of hashes) {
    verifications()
    t.strictSame(await hasher.verify(hash, 'correct horse'), WRONG, JSON.stringify(hash.slice(0, 80)))
    t.match(verifications().map(({ args: [{ hash }] }) => hash), [PHC], 'with a hash of the cost that was configured')
  }
})

t.test('attack 42: a stored hash that would exhaust the machine is not computed', async t => {
  const hasher = new PasswordHasher(COST)
  await hasher.verify(null, 'correct horse')
  const { memoryCost, timeCost, parallelism } = HIGHEST_ARGON2_COST
  const costs = [
    `m=${memoryCost + 1},t=1,p=1`, 'm=4294967295,t=1,p=1', 'm=99999999999999999999,t=1,p=1',
    `m=8,t=${timeCost + 1},p=1`, 'm=8,t=4294967295,p=1', `m=136,t=1,p=${parallelism + 1}`, 'm=4294967295,t=1,p=16777215'
  ]

  for (const cost of costs) {
    verifications()
    t.strictSame(await hasher.verify(`$argon2id$v=19$${cost}$${SALT}$${OUTPUT}`, 'correct horse'), WRONG, cost)
    t.match(verifications().map(({ args: [{ hash }] }) => hash), [PHC], 'a hash of the cost that was configured is computed in its place')
  }
})

t.test('a stored hash of the highest cost that is taken matches', async t => {
  const hasher = new PasswordHasher(COST)

  for (const cost of [
    { memoryCost: 8, timeCost: HIGHEST_ARGON2_COST.timeCost, parallelism: 1 },
    { memoryCost: 8 * HIGHEST_ARGON2_COST.parallelism, timeCost: 1, parallelism: HIGHEST_ARGON2_COST.parallelism }
  ]) {
    const hash = await new PasswordHasher(cost).hash('correct horse')

    t.strictSame(await hasher.verify(hash, 'correct horse'), { matches: true, outdated: true })
  }
})

t.test('attack 40: without a hash, and with a password that cannot exist, one verification is made as well', async t => {
  const hasher = new PasswordHasher(COST)
  const hash = await hasher.hash('correct horse')
  await hasher.verify(null, 'the first one, for which a hash is made')
  const attempts: Array<[string | null, string]> = [
    [null, 'correct horse'], [null, 'wrong horse'], [null, ''], [null, 'not the password'], [hash, 'short'],
    [hash, 'a'.repeat(1025)], [hash, 'half \ud800 a pair'], [hash, 'wrong horse']
  ]

  for (const [stored, password] of attempts) {
    verifications()
    hashings()
    t.strictSame(await hasher.verify(stored, password), WRONG)
    t.match(verifications().map(({ args: [{ hash }] }) => hash), [PHC])
    t.strictSame(hashings(), [], 'and nothing else is computed')
  }
})

t.test('attack 40: one hash is made for many verifications at once without a hash', async t => {
  const hasher = new PasswordHasher(COST)
  verifications()
  hashings()

  await Promise.all(Array.from({ length: 10 }, () => hasher.verify(null, 'correct horse')))

  t.equal(hashings().length, 1)
  t.equal(verifications().length, 10)
})

t.test('attack 42: when too many hashes are waiting, one more is turned away as busy, the others are made, and then there is room again', async t => {
  const hasher = new PasswordHasher(COST)
  const hash = await hasher.hash('correct horse')
  await hasher.verify(null, 'the first one, for which a hash is made')

  const crowd = Array.from({ length: CAPACITY }, () => hasher.hash('correct horse'))
  const turnedAway = await Promise.allSettled([hasher.hash('correct horse'), hasher.verify(hash, 'correct horse'), hasher.verify('garbage', 'correct horse')])

  for (const attempt of turnedAway) t.match(attempt, { status: 'rejected', reason: BUSY })
  await t.resolves(Promise.all(crowd))
  const again = await Promise.all(Array.from({ length: CAPACITY }, () => hasher.verify(hash, 'correct horse')))
  t.ok(again.every(({ matches }) => matches))
})

t.test('attack 42: a verification without a hash is turned away as busy too, and not for ever', async t => {
  const hasher = new PasswordHasher(COST)
  await hasher.hash('correct horse')

  const crowd = Array.from({ length: CAPACITY }, () => hasher.hash('correct horse'))
  await t.rejects(hasher.verify(null, 'correct horse'), BUSY)
  await Promise.all(crowd)

  t.strictSame(await hasher.verify(null, 'correct horse'), WRONG)
})

t.test('a password is normalised or refused', async t => {
  t.equal(normalizePassword('ｐａｓｓｗｏｒｄ'), 'password')
  t.equal(normalizePassword('short'), null)
  t.equal(normalizePassword('half \ud800 a pair'), null)
})
