import fc from 'fast-check'
import t from 'tap'
import { holds } from '../../../test/helpers/properties.js'
import {
  type Grant, type Issued, LIFETIMES, accessToken, firstTokens, presentedToken, refreshed, withoutToken
} from './grant.js'

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000]
const START = Date.UTC(2026, 0, 1)
const RESOURCE = 'https://app.example/mcp'

/** A client that keeps all that it was given. */
class ClientOfGrant {
  grant: Grant = {
    grantId: 'g'.repeat(24),
    userId: 'ada',
    generation: 0,
    clientId: 'assistant',
    content: {
      clientName: 'Assistant',
      redirectUri: 'https://client.example/callback',
      resource: RESOURCE,
      scopes: ['read', 'write'],
      auth: { at: START, amr: [] },
      tokens: []
    },
    version: 0,
    createdAt: START,
    usedAt: START,
    endsAt: START + 10 * MINUTE
  }

  now = START
  readonly first: string

  constructor () {
    this.first = this.#written(firstTokens(this.grant, this.#how()))
  }

  #how (asked: { resource?: string, scope?: string } = {}) {
    return { lifetimes: LIFETIMES, now: this.now, ...asked }
  }

  #written (next: Issued | string): string {
    if (typeof next === 'string') return next
    this.grant = next.grant
    this.last = next.tokens
    return next.tokens.refresh
  }

  last: Issued['tokens'] | undefined

  /** Returns the new refresh token, or why there is none. */
  refresh (token: string, asked?: { resource?: string, scope?: string }): string {
    const presented = presentedToken(token)
    return presented === null ? 'no token' : this.#written(refreshed(this.grant, presented, this.#how(asked)))
  }

  /** Whether a refresh token would be taken; nothing is written. */
  tried (token: string): string {
    const presented = presentedToken(token)
    const next = presented === null ? 'no token' : refreshed(this.grant, presented, this.#how())
    return typeof next === 'string' ? next : 'good'
  }

  isOpen (token = ''): boolean {
    const presented = presentedToken(token)
    return presented !== null && accessToken(this.grant, presented, this.now) !== null
  }
}

const isToken = (text: string): boolean => text.startsWith('srt_')

t.test('a token says its kind and its grant, and only a hash of its secret is kept', t => {
  const client = new ClientOfGrant()
  const { refresh = '', access = '' } = client.last ?? {}
  t.match(presentedToken(refresh), { kind: 'refresh', grantId: client.grant.grantId })
  t.match(presentedToken(access), { kind: 'access', grantId: client.grant.grantId })
  for (const token of [refresh, access]) t.notOk(JSON.stringify(client.grant).includes(token.slice(28)))
  for (const text of [undefined, 1, '', 'srt_', `${refresh}x`, refresh.slice(0, -1), refresh.replace('srt', 'sxt'), ` ${refresh}`]) {
    t.equal(presentedToken(text), null)
  }
  t.end()
})

t.test('windows of one client share a refresh token: 33 seconds, 76 seconds, 7 minutes 45 seconds apart', t => {
  for (const apart of [33 * SECOND, 76 * SECOND, 7 * MINUTE + 45 * SECOND]) {
    const client = new ClientOfGrant()
    client.now += HOUR
    const one = client.refresh(client.first)
    client.now += apart
    const other = client.refresh(client.first)
    t.strictSame([one, other].map(isToken), [true, true])
    // Each window goes on with its own.
    client.now += HOUR
    t.strictSame([client.refresh(one), client.refresh(other)].map(isToken), [true, true])
  }
  t.end()
})

t.test('five windows share a refresh token in one second', t => {
  const client = new ClientOfGrant()
  const tokens = Array.from({ length: 5 }, () => client.refresh(client.first))
  t.ok(tokens.every(isToken))
  t.equal(new Set(tokens).size, 5)
  client.now += 8 * MINUTE
  t.ok(tokens.map(token => client.refresh(token)).every(isToken))
  t.end()
})

t.test('an answer that was lost is asked for again', t => {
  const client = new ClientOfGrant()
  client.refresh(client.first)
  client.now += 9 * MINUTE + 59 * SECOND
  const next = client.refresh(client.first)
  t.ok(isToken(next))
  client.now += SECOND
  t.equal(client.refresh(client.first), 'replayed', 'its time is that of the first use')
  t.ok(isToken(client.refresh(next)))
  t.end()
})

t.test('a refresh token is over once one of its successors was used', t => {
  const client = new ClientOfGrant()
  const [one, other] = [client.refresh(client.first), client.refresh(client.first)]
  t.ok(isToken(client.refresh(one)))
  t.equal(client.refresh(client.first), 'replayed')
  t.ok(isToken(client.refresh(other)), 'its siblings are good')
  t.ok(isToken(client.refresh(one)), 'and so is the one that was used, while its successor was not')
  t.end()
})

t.test('a refresh token that was used has ten successors', t => {
  const client = new ClientOfGrant()
  const outcomes = Array.from({ length: 12 }, () => client.refresh(client.first))
  t.strictSame(outcomes.map(isToken), [...Array(10).fill(true), false, false])
  t.equal(outcomes.at(-1), 'replayed')
  t.ok(outcomes.slice(0, 10).every(token => client.tried(token) === 'good'))
  t.end()
})

t.test('attack 180: a refresh token that is sent again after an hour is replayed', t => {
  const client = new ClientOfGrant()
  client.refresh(client.first)
  client.now += HOUR
  t.equal(client.refresh(client.first), 'replayed')
  t.end()
})

t.test('a refresh token that the grant never had counts as replayed: those that were replaced long ago are not known', t => {
  const client = new ClientOfGrant()
  let token = client.first
  for (let i = 0; i < 30; i++, client.now += HOUR) token = client.refresh(token)
  t.equal(client.tried(client.first), 'replayed')
  t.equal(client.tried(`srt_${client.grant.grantId}${'x'.repeat(43)}`), 'replayed')
  t.ok(isToken(client.refresh(token)))
  t.end()
})

t.test('an access token does not refresh', t => {
  const client = new ClientOfGrant()
  const { access = '' } = client.last ?? {}
  t.equal(client.tried(access), 'replayed')
  t.equal(client.tried(access.replace('sat_', 'srt_')), 'replayed')
  t.notOk(client.isOpen(client.first))
  t.end()
})

t.test('a refresh token that nobody used for thirty days has expired, and is not called replayed', t => {
  const client = new ClientOfGrant()
  client.now += 30 * DAY - SECOND
  t.equal(client.tried(client.first), 'good')
  client.now += SECOND
  t.equal(client.refresh(client.first), 'expired')
  t.end()
})

t.test('a refresh token that was used in its last minute has expired after it', t => {
  const client = new ClientOfGrant()
  client.now += 30 * DAY - MINUTE
  const next = client.refresh(client.first)
  client.now += 2 * MINUTE
  t.equal(client.refresh(client.first), 'expired')
  t.ok(isToken(client.refresh(next)))
  t.end()
})

t.test('each use begins the thirty days anew, until the grant is a year old', t => {
  const client = new ClientOfGrant()
  let token = client.first
  for (let day = 29; day < 365; day += 29) {
    client.now = START + day * DAY
    token = client.refresh(token)
    t.ok(isToken(token))
  }
  client.now = START + 365 * DAY - MINUTE
  token = client.refresh(token)
  t.equal(client.last?.expiresIn, 60, 'no token outlives the grant')
  const access = client.last?.access
  t.ok(client.isOpen(access))
  client.now += MINUTE
  t.equal(client.refresh(token), 'expired')
  t.equal(client.refresh(client.first), 'expired', 'replays of a grant that is over tell nothing')
  t.notOk(client.isOpen(access))
  t.end()
})

t.test('of more than ten refresh tokens the one unused longest goes, which is not called replayed', t => {
  const client = new ClientOfGrant()
  const windows = Array.from({ length: 10 }, () => client.refresh(client.first))
  const [one = '', two = '', three = ''] = windows
  client.now += HOUR
  // It was issued first, but is the one used last: its answer may have been lost.
  client.refresh(one)
  t.equal(client.tried(one), 'good')
  t.equal(client.tried(two), 'expired')
  t.equal(client.tried(three), 'good')
  t.end()
})

t.test('nine windows that refresh in turns, each with its own, do not sign each other out', t => {
  const client = new ClientOfGrant()
  const windows = Array.from({ length: 9 }, () => client.refresh(client.first))
  for (let turn = 0; turn < 100; turn++) {
    client.now += 20 * SECOND
    const window = turn % 9
    const before = windows[window] ?? ''
    windows[window] = client.refresh(before)
    t.ok(isToken(windows[window]))
    t.equal(client.tried(before), 'good', 'its answer may be lost')
  }
  t.end()
})

t.test('of eleven that nobody used the last ones are good, and the first are not called replayed', t => {
  const client = new ClientOfGrant()
  const [one = '', ...others] = Array.from({ length: 10 }, () => client.refresh(client.first))
  let token = one
  for (let i = 0; i < 5; i++, client.now += HOUR) token = client.refresh(token)
  t.strictSame(others.map(text => client.tried(text)), others.map((_, index) => index < 1 ? 'expired' : 'good'))
  t.end()
})

t.test('without resource it is that of the grant, and no other', t => {
  const client = new ClientOfGrant()
  t.ok(isToken(client.refresh(client.first)))
  t.ok(isToken(client.refresh(client.first, { resource: RESOURCE })))
  const before = client.grant
  t.equal(client.refresh(client.first, { resource: `${RESOURCE}/` }), 'other-resource')
  t.equal(client.grant, before)
  const unused: Grant = { ...before, content: { ...before.content, tokens: [] } }
  t.equal(firstTokens(unused, { lifetimes: LIFETIMES, now: START, resource: 'https://app.example' }), 'other-resource')
  t.end()
})

t.test('scopes are narrowed for an access token alone, and never refused', t => {
  const client = new ClientOfGrant()
  const next = client.refresh(client.first, { scope: 'write admin' })
  t.strictSame(client.last?.scopes, ['write'])
  t.strictSame(client.grant.content.tokens.find(({ kind, scopes }) => kind === 'access' && scopes !== undefined)?.scopes, ['write'])
  client.refresh(next)
  t.strictSame(client.last?.scopes, ['read', 'write'])
  client.refresh(next, { scope: 'admin offline_access' })
  t.strictSame(client.last?.scopes, ['read', 'write'])
  t.end()
})

t.test('a grant gives its first tokens once, within its ten minutes', t => {
  const client = new ClientOfGrant()
  const how = { lifetimes: LIFETIMES, now: START }
  t.equal(firstTokens(client.grant, how), 'expired')
  const unused: Grant = { ...client.grant, endsAt: START + 10 * MINUTE, content: { ...client.grant.content, tokens: [] } }
  t.equal(firstTokens(unused, { ...how, now: START + 10 * MINUTE }), 'expired')
  const issued = firstTokens(unused, { ...how, now: START + 9 * MINUTE })
  t.match(issued, { grant: { endsAt: START + 365 * DAY }, tokens: { expiresIn: 600 } })
  t.end()
})

t.test('access tokens live ten minutes, twenty of a grant, and each ends alone', t => {
  const client = new ClientOfGrant()
  const { access: first = '' } = client.last ?? {}
  client.now += 10 * MINUTE - 1
  t.ok(client.isOpen(first))
  client.now += 1
  t.notOk(client.isOpen(first))

  let token = client.first
  const all: string[] = []
  for (let i = 0; i < 25; i++) {
    token = client.refresh(token)
    all.push(client.last?.access ?? '')
  }
  t.strictSame(all.map(access => client.isOpen(access)), all.map((_, index) => index >= 5))
  const [last = ''] = all.slice(-1)
  const presented = presentedToken(last)
  if (presented !== null) client.grant = withoutToken(client.grant, presented)
  t.notOk(client.isOpen(last))
  t.ok(client.isOpen(all.at(-2)))
  t.ok(isToken(client.refresh(token)))
  t.end()
})

t.test('a client that asks each hour keeps its row small', t => {
  const client = new ClientOfGrant()
  let token = client.first
  for (let i = 0; i < 2000; i++, client.now += HOUR) token = client.refresh(token)
  t.ok(client.grant.content.tokens.length <= 4, String(client.grant.content.tokens.length))
  t.end()
})

t.test('a client that leaves half of its refresh tokens unused keeps its row small', t => {
  const client = new ClientOfGrant()
  let token = client.first
  for (let i = 0; i < 300; i++, client.now += HOUR) {
    client.refresh(token)
    token = client.refresh(token)
  }
  t.ok(client.grant.content.tokens.length <= 25, String(client.grant.content.tokens.length))
  t.end()
})

/** What is known of a refresh token by the one who has seen all requests. */
interface Known {
  text: string
  of: Known | null
  issuedAt: number
  usedAt: number | null
  /** The last time that it was used or issued. */
  activeAt: number
  order: number
  successors: Known[]
}

t.test('attack 180: whatever is sent when: at most ten refresh tokens are good, and what was answered last is one of them', async t => {
  const step = fc.record({ pick: fc.nat(40), pause: fc.constantFrom(0, 0, SECOND, 33 * SECOND, 3 * MINUTE, 11 * MINUTE, HOUR, 12 * DAY, 31 * DAY) })
  await holds(t, fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
    const client = new ClientOfGrant()
    let order = 0
    const newKnown = (text: string, of: Known | null): Known =>
      ({ text, of, issuedAt: client.now, usedAt: null, activeAt: client.now, order: order++, successors: [] })
    const all = [newKnown(client.first, null)]
    for (const { pick, pause } of steps) {
      client.now += pause
      const token = all.at(-1 - pick % all.length)
      if (token === undefined) return
      const { usedAt, successors, issuedAt } = token
      const may = client.now < START + 365 * DAY && (usedAt === null
        ? client.now < issuedAt + 30 * DAY
        : client.now < usedAt + 10 * MINUTE && successors.length < 10 && successors.every(({ usedAt }) => usedAt === null))
      const before = all.filter(({ text }) => client.tried(text) === 'good')
      const outcome = client.refresh(token.text)
      if (isToken(outcome)) {
        if (!may) throw new Error('a token was good that must not be')
        const next = newKnown(outcome, token)
        Object.assign(token, { usedAt: usedAt ?? client.now, activeAt: client.now, order: order++ })
        next.order = order++
        token.successors.push(next)
        all.push(next)
        if (client.tried(outcome) !== 'good' && client.now < START + 365 * DAY) throw new Error('the answer is not good')
        // The client may not get this answer.
        const isLostForGood = token.successors.length === 10
        if (client.tried(token.text) !== 'good' && !isLostForGood) throw new Error('what was used cannot be used again')
        // What was used least recently has gone, and only as far as it must.
        const after = all.filter(({ text }) => client.tried(text) === 'good')
        const parent = token.of
        const gone = before.filter(known => !after.includes(known) && known !== parent && known !== token)
        if (gone.length > 0 && after.length < 10) throw new Error('more has gone than must')
        const [used, unused] = [after.filter(({ usedAt }) => usedAt !== null), after.filter(({ usedAt }) => usedAt === null)]
        const isWrong = (known: Known): boolean => known.usedAt === null
          ? used.some(other => other !== token) || unused.some(other => other.order < known.order)
          : used.some(other => other.order < known.order)
        if (gone.some(isWrong) && !isLostForGood) throw new Error('another one has gone')
        if (gone.some(known => client.tried(known.text) === 'replayed')) throw new Error('called replayed')
      } else if (may && before.includes(token)) {
        throw new Error(`a good token was refused: ${outcome}`)
      }
      const good = all.filter(({ text }) => client.tried(text) === 'good')
      if (good.length > 10) throw new Error(`${good.length} are good`)
      if (client.grant.content.tokens.length > 40) throw new Error('the row is large')
    }
  }), 3000)
})
