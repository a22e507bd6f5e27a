import { execFile } from 'node:child_process'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import type { Account, Link, User } from '../../lib/accounts/account.js'
import type { AccountQuery, CreateHook, Rule, UniqueKeys, UsersQuery } from '../../lib/accounts/auth-store.js'
import { MemoryAuthStore } from '../../lib/index.js'
import { authStoreContract } from '../../lib/testing.js'
import type { TestFunction } from '../../lib/testing/store-contract.js'
import { MemoryAttempts } from '../helpers/memory-attempts.js'

/** Runs the contract on stores, and returns the names of the tests that failed and how many passed. */
async function run (makeStore: Parameters<typeof authStoreContract>[1]): Promise<{ failed: string[], passed: number }> {
  const tests: Array<Parameters<TestFunction>> = []
  authStoreContract((...test) => { tests.push(test) }, makeStore)
  const failed: string[] = []
  for (const [name, check] of tests) await check().catch(() => { failed.push(name) })
  return { failed, passed: tests.length - failed.length }
}

t.test('a store that keeps the contract passes each test', async t => {
  const { failed, passed } = await run(() => new MemoryAuthStore())

  t.strictSame(failed, [])
  t.ok(passed > 80)
})

t.test('a store that keeps accounts alone passes each test', async t => {
  const { failed } = await run(() => {
    return Object.defineProperties(new MemoryAuthStore(), {
      sessions: { value: null }, entries: { value: null }, abandonedGuests: { value: undefined }
    })
  })

  t.strictSame(failed, [])
})

t.test('a store that does not look for guests who are over passes each test', async t => {
  const { failed } = await run(() => Object.defineProperties(new MemoryAuthStore(), { abandonedGuests: { value: undefined } }))

  t.strictSame(failed, [])
})

t.test('a store that does one thing wrong fails the tests that are about it', async t => {
  class Forgetful extends MemoryAuthStore {
    override async change<T> (find: AccountQuery, wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
      return super.change(find, wanted, (account, owners) => {
        const decision = rule(account, owners)
        const { account: after } = decision
        const passwordHash = account?.passwordHash ?? null
        return after != null && passwordHash !== null ? { ...decision, account: { ...after, passwordHash } } : decision
      })
    }
  }
  class Careless extends MemoryAuthStore {
    override async change<T> (find: AccountQuery, _wanted: UniqueKeys, rule: Rule<T>): Promise<T> {
      return super.change(find, {}, rule)
    }
  }

  const forgetful = await run(async () => new Forgetful())
  const careless = await run(async () => new Careless())

  t.ok(forgetful.failed.includes('a password hash is replaced if it is still the one that was read'))
  t.notOk(forgetful.failed.includes('a link can be removed: the others are left, in order, and its subject belongs to no user'))
  t.ok(careless.failed.includes('a link that a user has, this one or another, is not added, and nothing is noted'))
  t.ok(careless.passed > 40)
})

/** Decides by what was there a moment before it writes. */
class Racing extends MemoryAuthStore {
  override async change<T> (find: AccountQuery, keys: UniqueKeys, rule: Rule<T>): Promise<T> {
    const decided = await super.change(find, keys, (...given) => ({ result: rule(...given) }))
    await setImmediate()
    return super.change(find, keys, () => decided)
  }
}

/** Does not say that an e-mail, a link or a factor is taken. */
class Silent extends MemoryAuthStore {
  override async insert (account: Account): Promise<boolean> {
    await super.insert(account)
    return true
  }
}

class Unordered extends MemoryAuthStore {
  override async links (userId: string): Promise<Link[]> { return (await super.links(userId)).reverse() }
  override async users (query: UsersQuery): Promise<User[]> { return (await super.users(query)).reverse() }
}

class Normalizing extends MemoryAuthStore {
  override async insert (account: Account): Promise<boolean> {
    return super.insert({ ...account, name: account.name?.normalize('NFKC') ?? null })
  }
}

/** Writes the user, and asks the hook afterwards: a refusal comes too late. */
class Hasty extends MemoryAuthStore {
  override async insert (account: Account, hook?: CreateHook<null>): Promise<boolean> {
    const isMade = await super.insert(account)
    if (isMade) await hook?.(account, null)
    return isMade
  }
}

/** Asks the hook outside of the transaction, and then writes. */
class Eager extends MemoryAuthStore {
  override async insert (account: Account, hook?: CreateHook<null>): Promise<boolean> {
    return super.insert(await hook?.(account, null) ?? account)
  }
}

class Deaf extends MemoryAuthStore {
  override async insert (account: Account): Promise<boolean> { return super.insert(account) }
  override async change<T> (find: AccountQuery, keys: UniqueKeys, rule: Rule<T>): Promise<T> {
    return super.change(find, keys, rule)
  }
}

class Sweeping extends MemoryAuthStore {
  override async abandonedGuests (): Promise<string[]> { return super.abandonedGuests(Infinity, Infinity, 100, '') }
}

const WRONG: ReadonlyArray<readonly [string, new () => MemoryAuthStore, string[]]> = [
  ['is not atomic', Racing, [
    'sessions that are ended many times at once are counted exactly', 'of many users who add one link at once, one gets it',
    'of many links that are removed at once, one stays', 'a code is spent by one of many requests at once'
  ]],
  ['writes over what is unique', Silent, [
    'a second user with an e-mail is refused, and nothing of that user is written', 'of many users made at once with one link, one is made'
  ]],
  ['has no order', Unordered, ['links are ordered by the code points of the provider', 'users are listed newest first, page by page']],
  ['changes values', Normalizing, ['any text is kept as it is']],
  ['commits before it asks the hook', Hasty, [
    'the hook is asked once and its claims are written with the user, by createUser',
    'a user whom the hook refuses is not written, by createUser', 'a user is not seen before the hook is done, by createUser'
  ]],
  ['asks the hook outside of the transaction', Eager, ['the hook is not asked about a user who is not created']],
  ['asks no hook, and says that it does', Deaf, [
    ...['createUser', 'enterIdentity', 'signInByMail'].map(way =>
      `the hook is asked once and its claims are written with the user, by ${way}`),
    'the hook is asked once about a guest who becomes a user'
  ]],
  ['takes each guest for an abandoned one', Sweeping, [
    'guests without an open session are abandoned', 'a guest is not abandoned before a time after their creation',
    'abandoned guests are listed part by part, each once'
  ]]
]
for (const [what, Store, tests] of WRONG) {
  t.test(`a store that ${what} fails`, async t => {
    const { failed } = await run(() => new Store())

    for (const name of tests) t.ok(failed.includes(name), name)
  })
}

t.test("stores that do not see each other's data fail", async t => {
  const { failed } = await run(() => ({ store: new MemoryAuthStore(), twin: new MemoryAuthStore() }))

  t.ok(failed.includes('a new user is found by id, by e-mail and by link'))
})

t.test('counts that both stores share keep the contract, and counts of each store fail', async t => {
  const stores = (counts: MemoryAttempts, countsOfTwin: MemoryAttempts) => {
    const store = new MemoryAuthStore()
    return { store: Object.assign(store, { attempts: counts }), twin: Object.assign(new MemoryAuthStore(), { attempts: countsOfTwin }) }
  }
  const ofCounts = async (makeStore: Parameters<typeof run>[0]): Promise<string[]> => {
    return (await run(makeStore)).failed.filter(name => name.includes('limit'))
  }

  const shared = await ofCounts(() => {
    const counts = new MemoryAttempts()
    return stores(counts, counts)
  })
  const own = await ofCounts(() => stores(new MemoryAttempts(), new MemoryAttempts()))

  t.strictSame(shared, [])
  t.strictSame(own, [
    'of many attempts at once as many are within a limit as it allows',
    'an attempt beyond a limit hears for how long, and later limits do not count it'
  ])
})

t.test('each store is closed once a test, whether it passed or failed', async t => {
  const open = new Set<MemoryAuthStore>()
  class Counted extends MemoryAuthStore {
    constructor () {
      super()
      open.add(this)
    }

    override async findUser (): Promise<null> { return null }
    override async close (): Promise<void> { open.delete(this) }
  }

  const { failed } = await run(() => new Counted())

  t.ok(failed.length > 0)
  t.equal(open.size, 0)
})

t.test('node:test runs the contract', async t => {
  const program = `
    import { test } from 'node:test'
    import { SqlAuthStore } from 'fastify-svc-auth'
    import { authStoreContract } from 'fastify-svc-auth/testing'
    authStoreContract(test, () => new SqlAuthStore(':memory:'))
  `
  const hooks = new URL('../typescript.mjs', import.meta.url).href
  const folder = t.testdir({ 'store.test.mjs': program })
  // env -i, not the option env: tap adds its loaders to that.
  const { stdout } = await promisify(execFile)('env', ['-i', process.execPath, '--import', hooks, `${folder}/store.test.mjs`])

  t.match(stdout, /^# fail 0$|^ℹ fail 0$/m)
  t.match(stdout, /(?:#|ℹ) pass (?:[89]\d|\d\d\d)\n/)
})
