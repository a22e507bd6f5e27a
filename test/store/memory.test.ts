import t from 'tap'
import { Accounts } from '../../lib/accounts/accounts.js'
import { MemoryAuthStore } from '../../lib/engines/memory/memory.js'
import { CHALLENGE, RECORDS_OF_USE, SECOND_STEP, SIGN_IN } from '../../lib/session/store.js'
import { authStoreContract } from '../../lib/testing.js'
import { startApp } from '../helpers/app.js'

const LINE = /"level":40.*"kind":"passkey-challenge".*entries of a kind in memory, so the oldest are removed/

t.test('attack 161: what any client can cause pushes out no record of a use, and the log says once that memory is full', async t => {
  const lines: string[] = []
  const store = new MemoryAuthStore()
  await startApp(t, { store }, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  const { entries } = store
  const startedAt = Date.now()
  const put = async (kind: string, name: number | string, at = startedAt) =>
    entries.put({ hash: `${kind} ${name}`, kind, owner: `owner ${name}`, content: {}, startedAt: at }, 21)
  const kinds = [SIGN_IN, CHALLENGE]
  for (const kind of RECORDS_OF_USE) await put(kind, 'used')
  await put(SECOND_STEP, 'of the owner')
  await entries.attempt({ hash: `${SECOND_STEP} of the owner`, kind: SECOND_STEP, owner: 'owner of the owner' }, 1)

  for (const kind of kinds) for (let index = 0; index < 50_000; index++) await put(kind, index)
  t.strictSame(lines, [])
  for (const kind of kinds) for (let index = 50_000; index < 50_010; index++) await put(kind, index)

  for (const kind of RECORDS_OF_USE) t.equal(await entries.count('owner used', kind, 0), 1, kind)
  const step = { hash: `${SECOND_STEP} of the owner`, kind: SECOND_STEP, owner: 'owner of the owner' }
  t.ok(await entries.find(step), 'the step of another kind stays')
  t.equal(await entries.attempt(step, 1), null, 'with its attempts')
  t.equal(await entries.count('owner 9', CHALLENGE, 0), 0, 'the oldest of the kind are gone')
  t.equal(await entries.count('owner 10', CHALLENGE, 0), 1)
  t.equal(lines.length, kinds.length)
  t.match(lines[1], LINE)
  for (let index = 0; index < 50_001; index++) await put(CHALLENGE, index, startedAt + 60 * 60_000)
  t.equal(lines.length, kinds.length + 1, 'an hour later again')
})

t.test('MemoryAuthStore', async t => {
  authStoreContract(t.test, () => new MemoryAuthStore())

  t.test('users can be read after the store was closed', async t => {
    const store = new MemoryAuthStore()
    await new Accounts(store).createUser({
      userId: '1',
      email: 'ada@example.com',
      emailVerified: true,
      name: null,
      claims: {},
      link: { provider: 'dev', subject: '1', claims: { sub: '1' } }
    })

    await store.close()

    t.hasStrict(await store.findUser({ email: 'ada@example.com' }), { userId: '1' })
  })
})
