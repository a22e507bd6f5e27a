import t from 'tap'
import { Authorization, LocalIdentityProvider, SqlAuthStore } from '../../lib/index.js'
import { advanceClock } from '../helpers/clock.js'
import { settingsFor, startExample } from './example-process.js'
import { type Page, Visitor, userIdOn } from './visitor.js'

const settings = { ...await settingsFor(t), LOCAL_IDP_SECRET: 'a-secret-that-both-of-them-know.', LOG_LEVEL: 'info' }
const url = `http://localhost:${settings.PORT}`
const local = new LocalIdentityProvider({ secret: settings.LOCAL_IDP_SECRET })
const example = await startExample(t, settings)

const store = new SqlAuthStore(settings.LOCAL_AUTH_DB)
t.teardown(async () => store.close())
const authorization = new Authorization(store)

const hypatia = await member('hypatia')
await authorization.grant(hypatia.userId, { role: 'admin' })
await hypatia.visitor.becomeAdministrator(url)

t.test('the first user who accepts an invitation has the role at once, and no later one', async t => {
  const link = await invite('editor')
  const guest = new Visitor()
  const login = await guest.open(link)
  t.equal(login.url.pathname, '/auth/pages/sign-in', 'a visitor signs in first')
  const offer = await guest.register({ email: 'synesius@example.com', password: 'letters and hymns' })
  t.equal(offer.url.href, link)
  t.match(offer.text, /<strong>hypatia@example\.com<\/strong> offers you the role <strong>editor<\/strong>/)
  t.notMatch(offer.text, 'takes the place')

  const claims = await guest.press('Accept')
  t.equal(claims.url.pathname, '/')
  t.match(claims.text, '<dt>role</dt><dd>editor</dd>')

  const { visitor: other, userId } = await member('late')
  await other.open(link)
  t.match(await other.press('Accept'), { status: 401, text: 'This link was used already' })
  t.same((await authorization.findUser({ userId }))?.claims, {})
})

t.test('one of two users who accept at once has the role', async t => {
  const link = await invite('member')
  const guests = await Promise.all(['first', 'second'].map(member))
  await Promise.all(guests.map(async ({ visitor }) => visitor.open(link)))

  const pages = await Promise.all(guests.map(async ({ visitor }) => visitor.press('Accept')))
  t.same(pages.map(({ status }) => status).sort(), [200, 401])
  const users = await Promise.all(guests.map(async ({ userId }) => authorization.findUser({ userId })))
  t.same(users.map(user => user?.claims.role ?? null).sort(), ['member', null])
})

t.test('looking at an invitation changes nothing, and tells a user with a role what becomes of it', async t => {
  const link = await invite('member')
  t.match((await hypatia.visitor.open(link)).text, 'It takes the place of your role <strong>admin</strong>.')

  t.equal((await hypatia.visitor.open(`${url}/admin`)).status, 200)
  const { visitor } = await member('patient')
  await visitor.open(link)
  t.equal((await visitor.press('Accept')).status, 200)
})

t.test('a deleted user accepts no invitation', async t => {
  const link = await invite('member')
  const { visitor, userId } = await member('gone')
  await visitor.open(link)
  await authorization.deleteUser(userId)

  t.equal((await visitor.press('Accept')).url.pathname, '/auth/pages/sign-in')
  const { visitor: other } = await member('there')
  await other.open(link)
  t.equal((await other.press('Accept')).status, 200, 'and has used nothing up')
})

t.test('only an administrator makes invitations, and to roles that there are', async t => {
  const { visitor } = await member('eager')
  t.equal((await postForm(visitor, '/admin/invitations', { role: 'admin' })).status, 403)
  t.match(await postForm(new Visitor(), '/admin/invitations', { role: 'admin' }), { status: 200, url: { pathname: '/auth/pages/sign-in' } })
  t.equal((await postForm(hypatia.visitor, '/admin/invitations', { role: 'emperor' })).status, 400)
})

t.test('an invitation is void when its maker has stopped being an administrator', async t => {
  const { visitor: maker, userId } = await member('brief')
  await authorization.grant(userId, { role: 'admin' })
  await maker.becomeAdministrator(url)
  const link = await invite('admin', maker)
  const { visitor: guest, userId: guestId } = await member('accomplice')
  await guest.open(link)
  await authorization.withdraw(userId, ['role'])

  t.equal((await guest.press('Accept')).status, 401)
  t.equal((await guest.open(link)).status, 401)
  t.same((await authorization.findUser({ userId: guestId }))?.claims, {})
  t.equal((await postForm(maker, '/admin/invitations', { role: 'admin' })).status, 403, 'and he makes no more of them')

  await authorization.grant(userId, { role: 'admin' })
  await authorization.deleteUser(userId)
  t.equal((await guest.open(link)).status, 401)
})

t.test('no other token is an invitation, and an invitation does not pass for another token', async t => {
  const { visitor, userId } = await member('inventive')
  for (const use of [{}, { purpose: 'pre-auth' }, { audience: 'invitation' }, { audience: 'reports' }]) {
    const token = await local.issueIdToken(hypatia.userId, { offers: 'admin' }, 60, use)
    t.equal((await visitor.open(`${url}/invitation?token=${token}`)).status, 401, `a page for ${JSON.stringify(use)}`)
    t.equal((await postForm(visitor, '/invitation', { token })).status, 401, `a role for ${JSON.stringify(use)}`)
  }
  const unknownRole = await local.issueIdToken(hypatia.userId, { offers: 'emperor' }, 60, { purpose: 'invitation' })
  t.equal((await postForm(visitor, '/invitation', { token: unknownRole })).status, 401)
  t.same((await authorization.findUser({ userId }))?.claims, {})

  const token = new URL(await invite('member')).searchParams.get('token') ?? ''
  t.equal((await visitor.post('/auth/local/verify-token', { token })).status, 401)
  t.equal((await postForm(visitor, '/invitation', { token })).status, 200, 'though it is a good one')
})

t.test('an invitation ends after an hour', async t => {
  const { visitor } = await member('slow')
  const token = new URL(await invite('member')).searchParams.get('token') ?? ''
  const { iat, exp } = await local.verifyIdToken(token, { purpose: 'invitation' })
  t.equal(exp - iat, 3600)

  advanceClock(t, -3_601_000)
  const old = await local.issueIdToken(hypatia.userId, { offers: 'member' }, 3600, { purpose: 'invitation' })
  t.equal((await postForm(visitor, '/invitation', { token: old })).status, 401)
})

t.test('a form on another site makes no invitation and accepts none', async t => {
  const { visitor, userId } = await member('careless')
  const token = new URL(await invite('admin')).searchParams.get('token') ?? ''

  t.equal((await postForm(visitor, '/invitation', { token }, 'cross-site')).status, 403)
  t.equal((await postForm(hypatia.visitor, '/admin/invitations', { role: 'admin' }, 'same-site')).status, 403)
  t.same((await authorization.findUser({ userId }))?.claims, {})
})

t.test('a user who is signed out while reading an invitation signs in again and finds it as it was', async t => {
  const link = await invite('member')
  const { visitor } = await member('distracted')
  const { text } = await visitor.open(link)
  await visitor.press('Sign out')

  const login = await postForm(visitor, '/invitation', { token: /name="token" value="([^"]+)"/.exec(text)?.[1] ?? '' })
  t.equal(login.url.pathname, '/auth/pages/sign-in')
  await visitor.press('Sign in', { email: 'distracted@example.com', password: 'a password to share' })
  await visitor.open(link)
  t.match((await visitor.press('Accept')).text, '<dt>role</dt><dd>member</dd>')
})

t.test('the token of an invitation gets into no log and no Referer', async t => {
  const link = await invite('member')
  const answer = await new Visitor().request(link)
  t.equal(answer.status, 302)
  t.equal(answer.headers.get('referrer-policy'), 'strict-origin')
  await new Visitor().open(link)
  t.equal((await hypatia.visitor.open(link)).headers.get('referrer-policy'), 'strict-origin')

  await fetch(`${url}/last`)
  await example.says('"url":"/last"')
  t.match(example.output, '"url":"/invitation"', 'the requests are in the log')
  t.notMatch(example.output, new URL(link).searchParams.get('token') ?? '')
})

/** Somebody who is registered and signed in. */
async function member (name: string): Promise<{ visitor: Visitor, userId: string }> {
  const visitor = new Visitor()
  await visitor.open(url)
  const { text } = await visitor.register({ email: `${name}@example.com`, password: 'a password to share' })
  return { visitor, userId: userIdOn(text) }
}

/** @returns the link */
async function invite (role: string, admin = hypatia.visitor): Promise<string> {
  await admin.open(`${url}/admin`)
  const { text } = await admin.press('Make a link', { role })
  const [link] = /http[^<]+\/invitation\?token=[\w.-]+/.exec(text) ?? []
  if (link === undefined) throw new Error(`there is no link in ${text}`)
  return link
}

async function postForm (visitor: Visitor, path: string, fields: Record<string, string>, site = 'same-origin'): Promise<Page> {
  return visitor.send(`${url}${path}`, fields, site)
}
