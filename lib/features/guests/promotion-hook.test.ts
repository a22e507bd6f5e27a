/** The hook onCreateUser where a guest becomes a user. */
import SqliteDatabase from 'better-sqlite3'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import {
  type AuthPluginOptions, type AuthStore, type CreateUserHook, MemoryAuthStore, SignInRefused, SqlAuthStore,
  type UserCreation
} from '../../index.js'
import { mailbox, type Mailbox } from '../../testing.js'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { ADA, BASE_URL } from '../../../test/helpers/mail-app.js'
import { OwnProvider, signInAt } from '../../../test/helpers/own-provider.js'
import { emptyDatabase, query } from '../../../test/helpers/postgres.js'

const TABLE = 'create table members (user_id KEY primary key references svc_auth_users (user_id) on delete cascade, nick text unique)'

/** What an application writes by `tx`, if there is one, and a look into its table. */
interface Place {
  store: AuthStore
  write: (tx: unknown, statement: string) => unknown
  members: () => Promise<unknown[]>
}

const PLACES: Record<string, (t: Test) => Promise<Place>> = {
  memory: async () => ({ store: new MemoryAuthStore(), write: () => {}, members: async () => [] }),
  async SQLite (t) {
    const connection = new SqliteDatabase(':memory:')
    connection.pragma('foreign_keys = on')
    t.teardown(() => connection.close())
    const store = new SqlAuthStore(connection)
    t.teardown(() => store.close())
    await store.findUser({ email: ADA.email })
    connection.exec(TABLE.replace('KEY', 'text'))
    return {
      store,
      write: (_, statement) => { connection.exec(statement) },
      members: async () => connection.prepare('select user_id from members').all()
    }
  },
  async Postgres (t) {
    const url = await emptyDatabase(t)
    const store = new SqlAuthStore(url)
    t.teardown(() => store.close())
    await store.migrate()
    await query(url, TABLE.replace('KEY', 'uuid'))
    return {
      store,
      write: async (tx, statement) => Reflect.get(Object(tx), 'unsafe').call(tx, statement),
      members: async () => query(url, 'select user_id from members')
    }
  }
}

interface Shop {
  app: FastifyInstance
  mails: Mailbox
}

async function start (t: Test, store: AuthStore, onCreateUser: CreateUserHook, options: AuthPluginOptions = {}): Promise<Shop> {
  const mails = mailbox()
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    store,
    onCreateUser,
    providers: [new OwnProvider('a')],
    local: localProvider({ registration: {}, signInByMail: true, sendMail: mails.sendMail, mails: { limits: false } }),
    rateLimit: { register: 1000, login: 1000, mail: 1000, code: 1000 },
    guests: {},
    ...options
  }, {}, app => {
    app.post('/basket', async request => app.auth.signInGuest(request))
    app.get('/basket', { preHandler: app.auth.requireClaims({}, { guests: true }) }, async request => request.principal)
  })
  return { app, mails }
}

/** How a visitor signs in as a user who does not exist yet; the status and the code, or the error, of the answer. */
const WAYS: Record<string, {
  method: string
  provider: string
  go: (shop: Shop, browser: Browser) => Promise<{ isDone: boolean, says: string }>
}> = {
  'a password': {
    method: 'password',
    provider: 'local',
    async go (_, browser) {
      const { statusCode, body } = await browser.post('/auth/local/register', ADA)
      return { isDone: statusCode === 201, says: body }
    }
  },
  'a provider': {
    method: 'provider',
    provider: 'a',
    async go (_, browser) {
      const { body, headers: { location = '' } } = await signInAt(browser, 'a', { subject: 'ada', email: ADA.email })
      return { isDone: location !== '' && !location.includes('error='), says: `${location} ${body}` }
    }
  },
  'a mail': {
    method: 'mail',
    provider: 'application',
    async go ({ mails }, browser) {
      await browser.post('/auth/local/mail-login', { email: ADA.email })
      const { code } = await mails.next('sign-in')
      const { statusCode, body } = await browser.post('/auth/local/mail-login/confirm', { code })
      return { isDone: statusCode === 200, says: body }
    }
  }
}

const enter = async (browser: Browser): Promise<string> => (await browser.post('/basket')).json().userId
const principalOf = async (browser: Browser) => (await browser.get('/auth/session')).json().principal

for (const [kind, open] of Object.entries(PLACES)) {
  /** Writes a row, and then does what `then` says; with a promise where the store has one. */
  const hookOf = ({ write }: Place, then: (creation: UserCreation, again: () => unknown) => ReturnType<CreateUserHook>): CreateUserHook =>
    creation => {
      const { tx, user: { userId } } = creation
      const insert = (): unknown => write(tx, `insert into members values ('${userId}', '${userId}')`)
      const written = insert()
      return written instanceof Promise ? written.then(() => then(creation, insert)) : then(creation, insert)
    }

  for (const [way, { method, provider, go }] of Object.entries(WAYS)) {
    t.test(`by ${way} the hook is asked about the guest, in the transaction that makes them a user, on ${kind}`, async t => {
      const asked: UserCreation[] = []
      const place = await open(t)
      const shop = await start(t, place.store, hookOf(place, creation => {
        asked.push(creation)
        return { claims: { org: 'one' } }
      }))
      const browser = new Browser(shop.app)
      const userId = await enter(browser)
      await shop.app.auth.grant(userId, { role: 'vip' })
      t.strictSame(asked, [], 'nobody is asked about a guest')

      const { isDone, says } = await go(shop, browser)

      t.ok(isDone, says)
      const identity = way === 'a provider' ? { provider, subject: 'ada' } : undefined
      t.match(asked, [{ promoted: true, method, identity, request: { method: /GET|POST/ } }])
      t.match(asked[0]?.user, { userId, email: ADA.email, claims: { role: 'vip' }, guest: undefined, generation: 1 })
      t.match(await principalOf(browser), { userId, provider, claims: { role: 'vip', org: 'one' }, guest: undefined })
      t.match(await shop.app.auth.findUser({ email: ADA.email }), { userId, claims: { role: 'vip', org: 'one' } })
      t.strictSame(await place.members(), kind === 'memory' ? [] : [{ user_id: userId }])
      await shop.app.auth.deleteUser(userId)
      t.strictSame(await place.members(), [])
    })

    const REFUSALS: Record<string, [refuse: (again: () => unknown) => unknown, says: RegExp]> = {
      'a refusal': [() => { throw new SignInRefused('no_seat') }, /no_seat/],
      'an error': [() => { throw new TypeError('a secret mistake') }, /internal_error/],
      ...kind !== 'memory' && { 'a unique violation': [(again: () => unknown) => again(), /internal_error/] as const }
    }
    for (const [what, [refuse, expected]] of Object.entries(REFUSALS)) {
      t.test(`by ${way} ${what} of the hook leaves the guest as they were, on ${kind}`, async t => {
        let refuses = true
        const place = await open(t)
        const shop = await start(t, place.store, hookOf(place, (_, again) => refuses ? Object(refuse(again)) : undefined))
        const { app } = shop
        const browser = new Browser(app)
        const userId = await enter(browser)
        await app.auth.grant(userId, { role: 'vip' })
        const before = await app.auth.findUser({ userId })

        const { isDone, says } = await go(shop, browser)

        t.notOk(isDone)
        t.match(says, expected)
        t.match((await browser.get('/basket')).json(), { userId, guest: true })
        t.strictSame(await app.auth.findUser({ userId }), before)
        t.match(before, { guest: true, email: null, generation: 0 })
        t.strictSame((await app.auth.links(userId)).map(link => link.provider), ['guest'])
        for (const query of [{ email: ADA.email }, { provider: 'a', subject: 'ada' }]) t.equal(await app.auth.findUser(query), null)
        t.strictSame(await place.members(), [])

        refuses = false
        const second = await go(shop, browser)
        t.ok(second.isDone, second.says)
        t.match(await principalOf(browser), { userId, guest: undefined })
      })
    }

    t.test(`by ${way} nobody is promoted without a guest, on ${kind}`, async t => {
      const asked: UserCreation[] = []
      const place = await open(t)
      const shop = await start(t, place.store, creation => { asked.push(creation) })
      const { isDone, says } = await go(shop, new Browser(shop.app))
      t.ok(isDone, says)
      t.equal(asked.length, 1)
      t.notOk('promoted' in Object(asked[0]))
    })
  }

  t.test(`by createUser nobody is promoted, nor by an e-mail that the operator gives to a guest, on ${kind}`, async t => {
    const asked: UserCreation[] = []
    const { store } = await open(t)
    const { app } = await start(t, store, creation => { asked.push(creation) })
    const browser = new Browser(app)
    const userId = await enter(browser)
    await app.auth.createUser({ email: 'bob@example.com' })
    t.equal(asked.length, 1)
    t.notOk('promoted' in Object(asked[0]))
    await app.auth.updateUser(userId, { email: ADA.email })
    t.equal(asked.length, 1)
  })
}

t.test('in memory what changes a guest while the hook is asked is not lost', async t => {
  const changes: Array<(app: FastifyInstance, userId: string) => Promise<unknown>> = [
    (app, userId) => app.auth.grant(userId, { role: 'vip' }), (app, userId) => app.auth.deleteUser(userId)
  ]
  for (const change of changes) {
    let asked = 0
    const { app } = await start(t, new MemoryAuthStore(), async ({ user: { userId } }) => {
      if (asked++ === 0) await change(app, userId)
      return { claims: { asked } }
    })
    const browser = new Browser(app)
    const userId = await enter(browser)

    const { statusCode } = await browser.post('/auth/local/register', ADA)

    const user = await app.auth.findUser({ userId })
    t.strictSame([statusCode, asked, user?.claims], user === null ? [400, 1, undefined] : [201, 2, { role: 'vip', asked: 2 }])
  }
})
