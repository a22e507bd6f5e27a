import { CompactEncrypt } from 'jose'
import t from 'tap'
import { Sealer } from '../lib/sealed.js'
import { derivedKey } from '../lib/secrets.js'

const [OLD, NEW] = ['the old data secret, 32 characters +', 'the new data secret, 32 characters +'] as const
const [ROW, OTHER_ROW] = ['6b1e1c9e-0c51-4c3a-9f44-2f0e8a2f5d11', '0d6a5a34-9a0f-4c56-8b6e-3b1f5f6f0c22'] as const
const UNREADABLE = { name: 'AuthError', code: 'unavailable', message: /^Encrypted data cannot be read/ }

const sealer = (...secrets: [string, ...string[]]) => new Sealer(secrets, 'factor')

t.test('a sealed text is opened, and cannot be read in its sealed form', async t => {
  for (const text of ['GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', '', 'ä 漢 🔑', 'x'.repeat(4096)]) {
    const sealed = await sealer(NEW).seal(text, ROW)

    t.strictSame(await sealer(NEW).open(sealed, ROW), { text, isOld: false })
    t.notOk(text !== '' && Buffer.from(sealed.split('.')[3] ?? '', 'base64url').includes(text))
  }
  t.not(await sealer(NEW).seal('a', ROW), await sealer(NEW).seal('a', ROW), 'equal texts do not look equal')
})

t.test('a sealed text names its algorithms, its row and the beginning of the hash of its key', async t => {
  const [header = '', key] = (await sealer(NEW).seal('text', ROW)).split('.')

  const { kid, ...others } = JSON.parse(Buffer.from(header, 'base64url').toString())
  t.match(kid, /^[\w-]{8}$/)
  t.strictSame(others, { alg: 'dir', enc: 'A256GCM', bind: ROW })
  t.equal(key, '')
})

t.test('attack 116: a sealed text of another row is unavailable', async t => {
  const [mine, theirs] = [await sealer(NEW).seal('mine', ROW), await sealer(NEW).seal('theirs', OTHER_ROW)]

  await t.rejects(sealer(NEW).open(theirs, ROW), { ...UNREADABLE, cause: { message: 'the sealed value belongs to another row' } })
  await t.rejects(sealer(NEW).open(mine, OTHER_ROW), UNREADABLE)
  const [, ...rest] = theirs.split('.')
  await t.rejects(sealer(NEW).open([mine.split('.')[0], ...rest].join('.'), ROW), UNREADABLE, 'nor with the header of the own one')
})

t.test('attack 116: a text that was sealed for another use is unavailable', async t => {
  const sealed = await new Sealer([NEW], 'hint').seal('text', ROW)

  await t.rejects(sealer(NEW).open(sealed, ROW), UNREADABLE)
})

t.test('a secret is changed in three deployments: each process opens what another one seals', async t => {
  const before = await sealer(OLD).seal('text', ROW)
  const [first, second] = [sealer(OLD, NEW), sealer(NEW, OLD)]

  t.strictSame(await first.open(before, ROW), { text: 'text', isOld: false })
  t.strictSame(await first.open(await second.seal('text', ROW), ROW), { text: 'text', isOld: true })
  t.strictSame(await second.open(await first.seal('text', ROW), ROW), { text: 'text', isOld: true })
  t.strictSame(await sealer(NEW).open(await second.seal('text', ROW), ROW), { text: 'text', isOld: false })
})

t.test('attack 116: without the secret that sealed it a text is unavailable, and the cause says why', async t => {
  const sealed = await sealer(OLD).seal('text', ROW)

  const refused = await t.rejects(sealer(NEW).open(sealed, ROW), {
    ...UNREADABLE,
    cause: { message: 'no secret of dataSecret or SVC_AUTH_DATA_SECRET has sealed the value' }
  })
  t.notOk(String(refused).includes(OLD))
})

t.test('attack 116: a text that was cut or changed anywhere is unavailable', async t => {
  const sealed = await sealer(NEW).seal('text', ROW)
  for (let length = 0; length < sealed.length; length++) {
    await t.rejects(sealer(NEW).open(sealed.slice(0, length), ROW), UNREADABLE, `cut after ${length} characters`)
  }
  // The last character of a part has bits that mean nothing, so the first one of each is changed.
  for (const part of [0, 2, 3, 4]) {
    const changed = sealed.split('.').map((text, index) => index === part ? (text.startsWith('A') ? 'B' : 'A') + text.slice(1) : text)
    await t.rejects(sealer(NEW).open(changed.join('.'), ROW), UNREADABLE, `part ${part}`)
  }
  for (const other of ['....', 'text', `${sealed}.`, null, undefined, 7, {}]) {
    await t.rejects(sealer(NEW).open(other as string, ROW), UNREADABLE, String(other))
  }
})

t.test('attack 116: what the right key has encrypted otherwise is unavailable', async t => {
  const { kid } = JSON.parse(Buffer.from((await sealer(NEW).seal('', ROW)).split('.')[0] ?? '', 'base64url').toString())
  const key = derivedKey(NEW, 'svc-auth sealed factor')
  const sealedAs = (header: { alg: string, enc: string }) => {
    return new CompactEncrypt(Buffer.from('text')).setProtectedHeader({ kid, bind: ROW, ...header }).encrypt(key)
  }

  t.strictSame(await sealer(NEW).open(await sealedAs({ alg: 'dir', enc: 'A256GCM' }), ROW), { text: 'text', isOld: false })
  await t.rejects(sealer(NEW).open(await sealedAs({ alg: 'dir', enc: 'A128CBC-HS256' }), ROW), UNREADABLE)
  await t.rejects(sealer(NEW).open(await sealedAs({ alg: 'A256KW', enc: 'A256GCM' }), ROW), UNREADABLE)
})
