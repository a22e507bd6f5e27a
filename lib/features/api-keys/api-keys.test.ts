import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { eventsOf } from '../../../test/helpers/audit-events.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { enrolAt, startFactorApp } from '../../../test/helpers/factor-app.js'
import {
  ADA, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, resetTokenOf, startMailApp
} from '../../../test/helpers/mail-app.js'
import { emptyDatabase } from '../../../test/helpers/postgres.js'
import { isSoon } from '../../../test/helpers/soon.js'
import { type AuthPluginOptions, MemoryAuthStore, SqlAuthStore } from '../../index.js'
import { Pages } from '../../pages.js'
import { ApiKeys, type ApiKeysOptions } from './api-keys.js'
import { findKey } from './find-key.js'
import { newKey } from './key-text.js'

const SCOPES = { 'notes:read': 'Read your notes', 'notes:write': { en: 'Change your notes', de: 'Notizen ändern' } }
const BY = { actor: 'test' }
const READ = { name: 'Laptop', scopes: ['notes:read'] }
const DAY_MS = 24 * 60 * 60 * 1000

type Find = (text: string) => Promise<string | null>

/** The option and the store, and what finds the key of a text as a guard does: its owner or user. */
function keysOf (options: Partial<ApiKeysOptions> = {}, target = ':memory:') {
  const store = new SqlAuthStore(target)
  const apiKeys = new ApiKeys({ prefix: 'shop', scopes: SCOPES, ...options })
  const { featureTables } = store
  if (featureTables === undefined) throw new Error('the store has no tables of features')
  const asked = { count: 0 }
  const warnings: unknown[] = []
  const part = apiKeys.resolve({
    async featureTables (name) {
      asked.count++
      return featureTables(name)
    }
  })
  const find: Find = async text => {
    const found = await findKey({ connectionRule: null }, part, text, { warn: (entry: unknown) => { warnings.push(entry) } })
    return found && (found.owner ?? found.userId)
  }
  return { options: { store, apiKeys }, find, asked, warnings }
}

async function startKeys (
  t: Test, options: Partial<ApiKeysOptions> = {}, others: AuthPluginOptions = {}, target = ':memory:'
): Promise<ReturnType<typeof keysOf> & { app: FastifyInstance }> {
  const keys = keysOf(options, target)
  return { ...keys, app: await startApp(t, { local: localProvider(), ...keys.options, ...others }) }
}

const ENGINES: Record<string, (t: Test) => Promise<string>> = {
  Postgres: emptyDatabase, SQLite: async () => ':memory:'
}

for (const [engine, open] of Object.entries(ENGINES)) {
  t.test(`on ${engine}`, async t => {
    const { app, find, asked } = await startKeys(t, {}, {}, await open(t))
    const { userId } = await app.auth.createUser({ email: 'ada@example.com' })

    t.test('a key of a user is found by one statement, listed without its hash, and ended', async t => {
      const { id, key } = await app.auth.createKey({ userId, name: 'Laptop', scopes: ['notes:write', 'notes:read'] }, BY)

      asked.count = 0
      t.equal(await find(key), userId)
      t.equal(asked.count, 2, 'the key with its user, and the note of its use')
      // The note is not awaited.
      t.ok(await isSoon(async () => (await app.auth.keys({ userId }))[0]?.lastUsedAt instanceof Date))
      t.equal(await find(key), userId)
      t.equal(asked.count, 3, 'the use is not noted again within the hour')
      const [listed] = await app.auth.keys({ userId })
      t.match(listed, { id, name: 'Laptop', scopes: ['notes:read', 'notes:write'], userId, owner: null, expiresAt: null })
      t.notHas(listed, 'hash')
      t.ok(await app.auth.endKey(id, BY))
      t.equal(await find(key), null)
      t.notOk(await app.auth.endKey(id, BY))
    })

    t.test('a key of an owner is found, and lists are those of one owner, the newest first', async t => {
      const made = []
      for (const name of ['one', 'two']) {
        made.unshift(await app.auth.createKey({ owner: 'job:nightly', name, scopes: ['notes:read'] }, BY))
      }
      t.equal(await find(made[0]?.key ?? ''), 'job:nightly')
      t.strictSame((await app.auth.keys({ owner: 'job:nightly' })).map(({ name }) => name).sort(), ['one', 'two'])
      t.strictSame(await app.auth.keys({ owner: 'job' }), [])
    })

    t.test('the use of a key is noted once an hour', async t => {
      const { key } = await app.auth.createKey({ owner: 'job:hourly', ...READ }, BY)
      const usedAt = async () => (await app.auth.keys({ owner: 'job:hourly' }))[0]?.lastUsedAt ?? null
      t.equal(await usedAt(), null)
      await find(key)
      t.ok(await isSoon(async () => await usedAt() !== null))
      const first = await usedAt()
      advanceClock(t, 59 * 60_000)
      await find(key)
      advanceClock(t, 2 * 60_000)
      t.strictSame(await usedAt(), first)
      await find(key)
      t.ok(await isSoon(async () => Number(await usedAt()) > Number(first)))
    })

    t.test('a key ends at its time, and a new one does not count it', async t => {
      const expiresAt = new Date(Date.now() + DAY_MS)
      const { key } = await app.auth.createKey({ owner: 'job:daily', ...READ, expiresAt }, BY)
      t.equal(await find(key), 'job:daily')
      advanceClock(t, DAY_MS)
      t.equal(await find(key), null)
      t.strictSame(await app.auth.keys({ owner: 'job:daily' }), [])
    })

    t.test('a user and an owner have fifty living keys at most, also when some are made at once', async t => {
      for (let count = 0; count < 48; count++) await app.auth.createKey({ owner: 'job:many', ...READ }, BY)
      const made = await Promise.allSettled(Array.from({ length: 5 }, () =>
        app.auth.createKey({ owner: 'job:many', ...READ }, BY)))
      t.ok(made.every(({ status, ...failed }) => status === 'fulfilled' || Object(failed).reason.code === 'too_many'))
      t.ok((await app.auth.keys({ owner: 'job:many' })).length <= 50)
      const left = 50 - (await app.auth.keys({ owner: 'job:many' })).length
      for (let count = 0; count < left; count++) await app.auth.createKey({ owner: 'job:many', ...READ }, BY)
      await t.rejects(app.auth.createKey({ owner: 'job:many', ...READ }, BY), { code: 'too_many' })
      t.equal((await app.auth.keys({ owner: 'job:many' })).length, 50)
    })

    t.test('the keys of a user go with the user', async t => {
      const { userId } = await app.auth.createUser({ email: 'bob@example.com' })
      const { id, key } = await app.auth.createKey({ userId, name: 'Laptop', scopes: ['notes:read'] }, BY)
      await app.auth.deleteUser(userId)

      t.equal(await find(key), null)
      t.notOk(await app.auth.endKey(id, BY))
    })
  })
}

t.test('attack 186: a text that is not a key, such as one with a typo, never reaches the database', async t => {
  const { app, find, asked } = await startKeys(t)
  const { key } = await app.auth.createKey({ owner: 'job:nightly', ...READ }, BY)

  for (const text of [`${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`, key.slice(0, -1), newKey('other').text, '']) {
    t.equal(await find(text), null)
  }
  t.equal(asked.count, 0)
  t.equal(await find(newKey('shop').text), null, 'an unknown key is refused')
  t.equal(asked.count, 1)
})

t.test('attack 186: the table has a hash of the secret, which is refused as a key', async t => {
  const { app, find, options: { store } } = await startKeys(t)
  const { id, key } = await app.auth.createKey({ owner: 'job:nightly', ...READ }, BY)
  const other = newKey('shop')
  const part = new ApiKeys({ prefix: 'shop', scopes: SCOPES }).resolve({ featureTables: store.featureTables })
  const row = await part.keys.end(id)
  if (row === null) return t.fail('there is no row')

  t.match(row.hash, /^[\w-]{43}$/)
  t.notMatch(JSON.stringify(row), key.slice('shop_'.length + 12, -6))
  // A text that is well formed, with the id of a row and another secret.
  await part.keys.insert({ ...row, keyId: other.keyId })
  t.equal(await find(other.text), null)
})

t.test('a key is made of what the option and the limits allow', async t => {
  const { app } = await startKeys(t, { maxAge: 90 })
  const { userId } = await app.auth.createUser({})
  const wrong: object[] = [
    {}, { userId, owner: 'job' }, { owner: '' }, { owner: userId }, { owner: userId.toUpperCase() }, { owner: 'x'.repeat(257) },
    { owner: 'job', name: '' }, { owner: 'job', name: 'x'.repeat(65) }, { owner: 'job', name: '\u202e' },
    { owner: 'job', scopes: [] }, { owner: 'job', scopes: ['admin'] }, { owner: 'job', scopes: 'notes:read' },
    { owner: 'job', expiresAt: new Date() }, { owner: 'job', expiresAt: new Date(Date.now() + 91 * DAY_MS) },
    { owner: 'job', expiresAt: Date.now() + DAY_MS }, { owner: 'job', expiresAt: new Date(NaN) }
  ]
  for (const fields of wrong) {
    await t.rejects(app.auth.createKey({ ...READ, ...fields }, BY), { code: 'invalid_request' }, JSON.stringify(fields))
  }
  await t.rejects(app.auth.createKey({ userId: '00000000-0000-4000-8000-000000000000', ...READ }, BY), { code: 'unknown_user' })
  await t.rejects(app.auth.keys({ userId: 'nobody' }), { code: 'unknown_user' })
  await app.auth.createKey({ owner: 'job', ...READ }, BY)
  const [{ expiresAt } = { expiresAt: null }] = await app.auth.keys({ owner: 'job' })
  t.ok(Math.abs(Number(expiresAt) - Date.now() - 90 * DAY_MS) < 60_000, 'maxAge sets the end of a key')
})

t.test('the option is checked, and needs a store with SQL', async t => {
  for (const prefix of ['', 's', 'Shop', '1shop', 'shop-live', 'x'.repeat(21), 'sat', 'srt_a', 'sac']) {
    t.throws(() => new ApiKeys({ prefix, scopes: SCOPES }), { name: 'OptionsError', message: /prefix must be/ }, prefix)
  }
  t.throws(() => new ApiKeys({ prefix: 'shop', scopes: {} }), /scopes must have one at least/)
  t.throws(() => new ApiKeys({ prefix: 'shop', scopes: { 'a b': 'A' } }), /scopes must be an object/)
  t.throws(() => new ApiKeys({ prefix: 'shop', scopes: SCOPES, maxAge: 0 }), /maxAge must be a whole number/)
  const apiKeys = new ApiKeys({ prefix: 'shop', scopes: SCOPES })
  await t.rejects(startApp(t, { store: new MemoryAuthStore(), apiKeys }), { message: /apiKeys needs a SqlAuthStore/ })
  const app = await startApp(t, { store: new SqlAuthStore(':memory:'), local: localProvider() })
  await t.rejects(app.auth.createKey({ owner: 'job', ...READ }), { code: 'unsupported' })
  await t.rejects(app.auth.keys({ owner: 'job' }), { code: 'unsupported' })
})

t.test('events say which key of whom was made and ended, and by whom, without its secret', async t => {
  const { app } = await startKeys(t)
  const [created, ended] = [eventsOf(t, 'key-created'), eventsOf(t, 'key-ended')]
  const { id, key } = await app.auth.createKey({ owner: 'job:nightly', ...READ }, BY)
  await app.auth.endKey(id, BY)

  t.match(created, [{ keyId: id, owner: 'job:nightly', scopes: ['notes:read'], actor: 'test' }])
  t.match(ended, [{ keyId: id, owner: 'job:nightly', actor: 'test' }])
  t.notMatch(JSON.stringify([created, ended]), key.slice(17))
})

/** An application with mails in which Ada has registered, and a key of hers. */
async function startWithKey (t: Test): Promise<MailApp & { find: Find, key: string, userId: string, token: string }> {
  const { options, find } = keysOf({ selfService: true })
  const made = await startMailApp(t, options)
  const token = await registerAt(made)
  const userId = String((await made.app.auth.findUser({ email: ADA.email }))?.userId)
  const { key } = await made.app.auth.createKey({ userId, ...READ }, BY)
  return { ...made, find, key, userId, token }
}

type WithKey = Awaited<ReturnType<typeof startWithKey>>

/** What happens to the account, and whether its key is good afterwards. */
const RULES: Record<string, [stays: boolean, act: (given: WithKey) => Promise<unknown>]> = {
  'a first proof by a reset': [false, async given =>
    given.browser.post('/auth/local/reset-password', { token: await resetTokenOf(given), password: NEW_PASSWORD })],
  'a reset by mail after the proof': [false, async given => {
    await confirmAddress(given.browser, given.token)
    await given.browser.post('/auth/local/reset-password', { token: await resetTokenOf(given), password: NEW_PASSWORD })
  }],
  'a release of the address': [false, async ({ app, token }) =>
    new Browser(app).post('/auth/local/verify-email', { token, not_me: true, email: ADA.email })],
  'resetFactors of the operator': [false, async ({ app, userId }) => app.auth.resetFactors(userId)],
  'a sign-out everywhere with keys': [false, async ({ app, userId }) => app.auth.signOutEverywhere(userId, { keys: true })],
  'a changed password with the box': [false, async ({ browser }) =>
    browser.post('/auth/local/change-password', { current: ADA.password, password: NEW_PASSWORD, keys: true })],
  'a deletion of the user': [false, async ({ app, userId }) => app.auth.deleteUser(userId)],
  'a first proof in the session of the user': [true, async ({ browser, token }) => confirmAddress(browser, token)],
  'a changed password without the box': [true, async ({ browser }) =>
    browser.post('/auth/local/change-password', { current: ADA.password, password: NEW_PASSWORD })],
  'a sign-out everywhere': [true, async ({ app, userId }) => app.auth.signOutEverywhere(userId)],
  'a password that the application sets': [true, async ({ app, userId }) => app.auth.setPassword(userId, NEW_PASSWORD)]
}

for (const [name, [stays, act]] of Object.entries(RULES)) {
  t.test(`attack 187: ${name} ${stays ? 'keeps' : 'ends'} the keys of the user`, async t => {
    const given = await startWithKey(t)
    t.equal(await given.find(given.key), given.userId)
    await act(given)

    t.equal(await given.find(given.key), stays ? given.userId : null)
    const user = await given.app.auth.findUser({ userId: given.userId })
    if (user === null) return
    t.equal((await given.app.auth.keys({ userId: given.userId })).length, stays ? 1 : 0)
    const { key } = await given.app.auth.createKey({ userId: given.userId, ...READ }, BY)
    t.equal(await given.find(key), given.userId, 'a new key is good')
  })
}

t.test('the keys of a user are refused while the user is blocked, and good afterwards', async t => {
  const { app, find, key, userId } = await startWithKey(t)
  await app.auth.block(userId)
  t.equal(await find(key), null)
  await t.rejects(app.auth.createKey({ userId, ...READ }, BY), { code: 'blocked' })
  await app.auth.unblock(userId)
  t.equal(await find(key), userId)
})

t.test('attack 189: a request with a header Authorization, or without a session, makes no key', async t => {
  const { options, find } = keysOf({ selfService: true })
  const app = await startApp(t, { local: localProvider(), ...options }, {}, app => {
    app.post('/keys', async request => app.auth.createKey({ owner: 'org:1', ...READ }, { request }))
  })
  const browser = new Browser(app)
  const { key } = await app.auth.createKey({ owner: 'org:1', ...READ }, BY)
  const authorization = `Bearer ${key}`

  t.equal((await browser.post('/keys', {})).statusCode, 401)
  t.equal((await browser.post('/keys', {}, { authorization })).statusCode, 401)
  await browser.post('/auth/local/register', ADA)
  t.equal((await browser.post('/keys', {}, { authorization })).statusCode, 401)
  t.equal((await browser.post('/auth/local/keys', READ, { authorization })).statusCode, 401)
  const made = await browser.post('/keys', {})
  t.equal(made.statusCode, 200, made.body)
  t.equal(await find(made.json().key), 'org:1')
})

t.test('with selfService users make their own keys, see them on their account page and end them', async t => {
  const { options, find } = keysOf({ selfService: true, maxAge: 365 })
  const pages = new Pages({ name: 'Shop' })
  const { app, browser, mails, ...rest } = await startMailApp(t, { ...options, pages })
  const token = await registerAt({ app, browser, mails, ...rest })
  await confirmAddress(browser, token)

  const made = await browser.post('/auth/local/keys', { ...READ, expiresInDays: 30 })
  t.equal(made.statusCode, 201, made.body)
  t.equal(made.headers['cache-control'], 'no-store, no-transform')
  const { id, key } = made.json()
  const { userId } = await app.auth.findUser({ email: ADA.email }) ?? {}
  t.equal(await find(key), userId)
  t.equal((await mails.next('key-created')).to, ADA.email)

  const shown = await browser.submit('/auth/local/keys', { name: '<b>', scopes: 'notes:read notes:write', expiresInDays: '' })
  t.equal(shown.statusCode, 200, shown.body)
  const [text = ''] = /shop_[0-9A-Za-z]{50}/.exec(shown.body) ?? []
  t.equal(await find(text), userId)
  const page = await browser.get('/auth/pages/account', { accept: 'text/html' })
  t.match(page.body, /API keys/)
  t.match(page.body, /Laptop/)
  t.match(page.body, /&#60;b/)
  t.match(page.body, /Change your notes/)
  t.match(page.body, /name="keys"/, 'the password form asks whether keys end')
  t.notMatch(page.body, text)

  const bob = new Browser(app)
  await bob.post('/auth/local/register', { email: 'bob@example.com', password: ADA.password })
  t.equal((await bob.post('/auth/local/keys/end', { id })).statusCode, 404)
  t.equal((await browser.post('/auth/local/keys/end', { id })).statusCode, 204)
  t.equal((await browser.post('/auth/local/keys/end', { id })).statusCode, 404)
  t.equal(await find(key), null)

  const wrong: Array<Record<string, unknown>> = [
    { scopes: ['admin'] }, { scopes: '' }, { scopes: [] }, { scopes: { a: 1 } }, { name: ' ' }, { name: 'x'.repeat(65) },
    { expiresInDays: 0 }, { expiresInDays: 366 }, { expiresInDays: '1.5' }, { name: ['a'] }
  ]
  for (const fields of wrong) {
    const { statusCode, body } = await browser.post('/auth/local/keys', { ...READ, ...fields })
    t.ok([400, 429].includes(statusCode), `${JSON.stringify(fields)} ${body}`)
  }
})

t.test('a key of their own takes a recent sign-in of the user, and a recent factor where they have one', async t => {
  const { options } = keysOf({ selfService: true })
  const made = await startFactorApp(t, {}, options)
  await registerAt(made)
  t.equal((await made.browser.post('/auth/local/keys', READ)).statusCode, 201)
  await enrolAt(t, made.browser)
  t.equal((await made.browser.post('/auth/local/keys', READ)).statusCode, 201)
  advanceClock(t, 11 * 60_000)
  const refused = await made.browser.post('/auth/local/keys', READ)
  t.match(refused.json(), { statusCode: 403, code: 'reauthenticate', methods: ['recovery', 'totp'] })
})

t.test('without selfService there are no routes, and without the option no section', async t => {
  const { app } = await startKeys(t)
  t.equal((await new Browser(app).post('/auth/local/keys', READ)).statusCode, 404)
  t.equal((await new Browser(app).post('/auth/local/keys/end', { id: 'a' })).statusCode, 404)
})
