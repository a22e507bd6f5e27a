/** Attack 135: what a lost connection makes of codes, entries and attempts that may be used once. */
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../lib/index.js'
import { Browser } from '../helpers/browser.js'
import { enrolAda, nextCode, startFactorApp, waitAt } from '../helpers/factor-app.js'
import { clientOf, emptyDatabase } from '../helpers/postgres.js'
import { isSoon } from '../helpers/soon.js'
import { startProxy } from '../helpers/tcp-proxy.js'

/** A store whose connections go through a network that can fail, and another way to its database. */
async function startStore (t: Test) {
  const url = await emptyDatabase(t)
  const proxy = await startProxy(t, url)
  const store = new SqlAuthStore(proxy.url)
  t.teardown(() => store.close())
  return { admin: clientOf(t, url), proxy, store }
}

const entry = (hash: string) => ({ hash, kind: 'sign-in', owner: `the session of ${hash}`, content: { of: hash }, startedAt: Date.now() })

for (const locked of ['put', 'take'] as const) {
  t.test(`attack 135: an entry is taken once when the connection of its batch is lost after its answer, in a ${locked}`, async t => {
    const { admin, proxy, store: { entries } } = await startStore(t)
    const [one, other] = [entry('one'), entry('other')]
    const take = async ({ hash, kind, owner } = one): Promise<unknown> => entries.take(hash, kind, [owner])
    await entries.put(other, 8)
    await admin.begin(async holder => {
      await holder`select from svc_auth_pending where hash = 'other' for update`
      const answered = entries.put(one, 8)
      const lost = locked === 'put' ? entries.put(other, 8) : take(other)
      await answered
      t.strictSame(await take(), { of: 'one' }, 'on another connection')

      proxy.reset()

      await t.rejects(lost, { code: 'unavailable' })
    })

    t.equal(await take(), null)
  })
}

t.test('attack 135: attempts are counted once when the connection of their batch is lost', async t => {
  const { admin, proxy, store: { attempts } } = await startStore(t)
  const count = async (key: string, max: number): Promise<unknown> => attempts?.count([{ key, max, timeWindow: 3_600_000 }])
  await count('other', 1)
  await admin.begin(async holder => {
    await holder`select from svc_auth_attempts for update`
    const answered = count('one', 1)
    const lost = count('other', 2)
    await answered

    proxy.reset()

    await t.rejects(lost, { code: 'unavailable' })
  })

  t.equal(await count('one', 2), null)
  t.equal(await count('other', 3), null, 'the server may have executed what was lost')
})

t.test('attack 135: a code whose answer is lost is spent', async t => {
  const { admin, proxy, store } = await startStore(t)
  const made = await startFactorApp(t, {}, { store })
  const { secret } = await enrolAda(t, made)
  const [one, other] = [new Browser(made.app), new Browser(made.app)]
  for (const browser of [one, other]) await waitAt(t, browser)
  const code = nextCode(t, secret)
  // The time step of the last code that was used.
  const counter = async (): Promise<number> => Number((await admin`select counter from svc_auth_factors where kind = 'totp'`)[0]?.counter)
  const before = await counter()
  proxy.hear = (data, line) => {
    const written = Number(/"counter":(\d+)/.exec(data.toString())?.[1])
    if (written > before) setImmediate(() => { line.client.resetAndDestroy() })
  }

  t.equal((await one.post('/auth/local/second-factor', { code })).json().code, 'unavailable')

  t.ok(await isSoon(async () => await counter() > before))
  t.equal((await other.post('/auth/local/second-factor', { code })).json().code, 'invalid_code')
})
