import t, { type Test } from 'tap'
import { AuthError, type AuthPluginOptions, type LocalIdentityProviderOptions, SignInRefused } from '../../index.js'
import { SecondFactor } from '../../second-factor.js'
import { capabilitiesOf } from '../../session/store.js'
import { userIdIn } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { advanceClock } from '../../../test/helpers/clock.js'
import { deferred } from '../../../test/helpers/deferred.js'
import { DATA_SECRET } from '../../../test/helpers/factor-app.js'
import { ADA, type MailApp, formsOn, mailsInTheEnd, startMailApp } from '../../../test/helpers/mail-app.js'
import { signInAt } from '../../../test/helpers/own-provider.js'
import { STORES } from '../../../test/helpers/stores.js'

const REGISTER = '/auth/local/register'
const DAY_MS = 86_400_000

/** Starts an application in which a registration confirms the address first. */
async function startConfirming (
  t: Test,
  options: AuthPluginOptions = {},
  { registration = {}, ...local }: LocalIdentityProviderOptions = {}
): Promise<MailApp> {
  return startMailApp(t, options, { registration: { ...Object(registration), verify: 'first' }, ...local })
}

/** Holds the first call of a method: before it, or before its answer. */
function holdFirst (of: object, name: string, { after = false } = {}): { isHeld: Promise<void>, goOn: () => void } {
  const [held, goOn] = [deferred(), deferred()]
  const method: (...given: unknown[]) => Promise<unknown> = Reflect.get(of, name).bind(of)
  Reflect.set(of, name, async (...given: unknown[]) => {
    Reflect.set(of, name, method)
    const early = after ? await method(...given) : undefined
    held.resolve()
    await goOn.promise
    return after ? early : method(...given)
  })
  return { isHeld: held.promise, goOn: goOn.resolve }
}

async function tokenFor ({ app, mails }: MailApp, email = ADA.email): Promise<string> {
  await new Browser(app).post(REGISTER, { email })
  return (await mails.next('register')).token
}

for (const kind of ['memory', 'SQLite'] as const) {
  t.test(`a registration that confirms the address first with ${kind}`, async t => {
    t.test('the e-mail alone sends a link, and its token with a password creates a user who is verified and signed in', async t => {
      const start = await startConfirming(t, { store: await STORES[kind](t) }, { registration: { roles: ['member'] } })
      const { app, browser, mails } = start

      const asked = await browser.post(REGISTER, { email: ' ADA@Example.com' })
      t.strictSame([asked.statusCode, asked.body], [202, ''])
      const link = await mails.next('register')
      t.match(link, { to: ADA.email, expiresIn: 86_400 })
      t.equal(link.url, `https://app.example/auth/local/register?token=${link.token}`)
      t.equal(await app.auth.findUser({ email: ADA.email }), null, 'no user exists yet')

      const answer = await browser.post(REGISTER, { token: link.token, password: ADA.password, name: 'Ada', role: 'member' })

      t.equal(answer.statusCode, 201)
      t.match(answer.json(), { provider: 'local', claims: { email: ADA.email, email_verified: true, name: 'Ada', role: 'member' } })
      t.equal((await browser.get('/private')).statusCode, 200)
      t.match(await app.auth.findUser({ email: ADA.email }), { emailVerified: true, name: 'Ada', claims: { role: 'member' } })
      t.equal((await new Browser(app).post('/auth/local/login', ADA)).statusCode, 200)
      const other = new Browser(app)
      await signInAt(other, 'a', { subject: 'ada', email: ADA.email })
      t.equal(await userIdIn(other), answer.json().userId, 'a provider that verified the address signs in the same user')
    })

    t.test('a known address gets the same answer, and a mail that says so', async t => {
      const start = await startConfirming(t, { store: await STORES[kind](t) })
      const { app, browser, mails } = start
      await browser.post(REGISTER, { token: await tokenFor(start), password: ADA.password })

      const [known, unknown] = await Promise.all([ADA.email, 'grace@example.com'].map(async email =>
        new Browser(app).post(REGISTER, { email })))

      t.strictSame([known?.statusCode, known?.body, known?.headers['set-cookie']], [202, '', undefined])
      t.strictSame([unknown?.statusCode, unknown?.body], [202, ''])
      t.match(await mails.next('exists'), { to: ADA.email, url: null, token: null })
      t.match(await mails.next('register'), { to: 'grace@example.com' })
    })

    t.test('an address that is taken meanwhile is told to who confirmed it', async t => {
      const start = await startConfirming(t, { store: await STORES[kind](t) })
      const [token, another] = [await tokenFor(start), await tokenFor(start)]
      await start.browser.post(REGISTER, { token, password: ADA.password })

      const other = new Browser(start.app)
      const answer = await other.post(REGISTER, { token: another, password: 'another password' })
      t.strictSame([answer.statusCode, answer.json().code], [409, 'exists'])
      t.equal(await userIdIn(other), null)
    })

    t.test('a link that was used makes no second account, not after the first one was deleted either', async t => {
      const store = await STORES[kind](t)
      const start = await startConfirming(t, { store })
      const [token, another] = [await tokenFor(start), await tokenFor(start)]
      const used = await start.browser.post(REGISTER, { token, password: ADA.password })
      await start.app.auth.deleteUser(used.json().userId)

      const second = await start.browser.post(REGISTER, { token, password: ADA.password })
      const page = await start.browser.get(`${REGISTER}?token=${token}`, { accept: 'text/html' })

      t.strictSame([second.statusCode, second.json().code, page.statusCode], [401, 'invalid_token', 401])
      t.equal(await start.app.auth.findUser({ email: ADA.email }), null)
      t.equal((await start.browser.post(REGISTER, { token: another, password: ADA.password })).statusCode, 201)
    })

    t.test('a link of which no user came can be used again', async t => {
      const store = await STORES[kind](t)
      const start = await startConfirming(t, { store })
      const token = await tokenFor(start)
      const use = async () => start.browser.post(REGISTER, { token, password: ADA.password })
      const other = await start.app.auth.createUser({ email: ADA.email, emailVerified: true })

      const taken = await use()
      await start.app.auth.deleteUser(other.userId)
      const insert = store.insert.bind(store)
      store.insert = async () => { store.insert = insert; throw new AuthError('unavailable') }
      const failed = await use()

      t.strictSame([taken.json().code, failed.json().code], ['exists', 'unavailable'])
      t.equal((await use()).statusCode, 201)
    })

    t.test('attack 146: a used link stays used as long as its token is accepted, after it has expired too', async t => {
      const store = await STORES[kind](t)
      const start = await startConfirming(t, { store })
      const [token, unused] = [await tokenFor(start), await tokenFor(start, 'grace@example.com')]
      const { userId } = (await start.browser.post(REGISTER, { token, password: ADA.password })).json()
      await start.app.auth.deleteUser(userId)
      advanceClock(t, DAY_MS + 30_000)

      const second = await start.browser.post(REGISTER, { token, password: ADA.password })

      t.strictSame([second.statusCode, second.json().code], [401, 'invalid_token'])
      t.equal(await start.app.auth.findUser({ email: ADA.email }), null)
      t.equal((await start.browser.post(REGISTER, { token: unused, password: ADA.password })).statusCode, 201, 'clocks may differ')
    })

    t.test('attack 146: of many uses at once one makes an account, and the others none after its deletion', async t => {
      const start = await startConfirming(t, { store: await STORES[kind](t) })
      const token = await tokenFor(start)
      const use = async () => new Browser(start.app).post(REGISTER, { token, password: ADA.password })

      const answers = await Promise.all(Array.from({ length: 5 }, use))
      const made = answers.filter(({ statusCode }) => statusCode === 201).map(answer => answer.json().userId)
      t.ok(answers.every(({ statusCode }) => [201, 409].includes(statusCode)))
      t.equal(new Set(made).size, 1, 'those of the same password in the same minute are that user')
      await start.app.auth.deleteUser(made[0])

      t.equal((await use()).json().code, 'invalid_token')
    })

    t.test('attack 146: a slow use makes no account once another one was made by the link and deleted', async t => {
      const store = await STORES[kind](t)
      const start = await startConfirming(t, { store })
      const token = await tokenFor(start)
      const use = async () => new Browser(start.app).post(REGISTER, { token, password: ADA.password })
      const { entries } = capabilitiesOf(store)
      if (entries === null) throw new Error('this store keeps no entries')
      const { isHeld, goOn } = holdFirst(entries, 'count', { after: true })

      const slow = use()
      await isHeld
      const { userId } = (await use()).json()
      await start.app.auth.deleteUser(userId)
      goOn()

      t.equal((await slow).json().code, 'exists')
      t.equal((await use()).json().code, 'invalid_token')
      t.equal(await start.app.auth.findUser({ email: ADA.email }), null)
    })

    t.test('attack 146: a link is used before there is an account: also when the answer of the store is lost', async t => {
      const store = await STORES[kind](t)
      const start = await startConfirming(t, { store })
      const token = await tokenFor(start)
      const use = async () => (await new Browser(start.app).post(REGISTER, { token, password: ADA.password })).json().code
      const insert = store.insert.bind(store)
      store.insert = async account => {
        store.insert = insert
        await insert(account)
        throw new AuthError('unavailable')
      }

      t.equal(await use(), 'unavailable')
      await start.app.auth.deleteUser((await start.app.auth.findUser({ email: ADA.email }))?.userId ?? '')

      t.equal(await use(), 'invalid_token')
    })

    t.test('attack 146: a use that is refused does not take back the use of another request', async t => {
      const store = await STORES[kind](t)
      let admits = false
      const refusing = deferred()
      let deleted: ReturnType<typeof holdFirst> | undefined
      const onSignIn = (): void => {
        if (admits) return
        // The look-up that follows tells whether the user is gone.
        deleted = holdFirst(store, 'findUser')
        refusing.resolve()
        throw new SignInRefused('not_yet')
      }
      const start = await startConfirming(t, { store, onSignIn })
      const token = await tokenFor(start)
      const use = async () => (await new Browser(start.app).post(REGISTER, { token, password: ADA.password })).json()
      const { entries } = capabilitiesOf(store)
      if (entries === null) throw new Error('this store keeps no entries')
      const admittedUses = holdFirst(entries, 'put')

      const admitted = use()
      await admittedUses.isHeld
      const refused = use()
      await refusing.promise
      await deleted?.isHeld
      admits = true
      admittedUses.goOn()
      const { userId } = await admitted
      deleted?.goOn()
      t.equal((await refused).code, 'not_yet')
      await start.app.auth.deleteUser(userId)

      t.equal((await use()).code, 'invalid_token')
    })

    t.test('attack 146: a use that comes too late removes its own record, and not that of another request', async t => {
      const store = await STORES[kind](t)
      const start = await startConfirming(t, { store })
      const token = await tokenFor(start)
      const use = async () => (await new Browser(start.app).post(REGISTER, { token, password: ADA.password })).json()
      const { entries } = capabilitiesOf(store)
      if (entries === null) throw new Error('this store keeps no entries')
      const lateUse = holdFirst(entries, 'put')

      const late = use()
      await lateUse.isHeld
      const { userId } = await use()
      lateUse.goOn()
      t.equal((await late).userId, userId, 'it is the same form')
      await start.app.auth.deleteUser(userId)

      t.equal((await use()).code, 'invalid_token')
    })

    t.test('attack 146: a registration whose sign-in fails keeps the link used, unless its user is deleted', async t => {
      let isDown = false
      const required = (): boolean => { if (isDown) throw new Error('down'); return false }
      const start = await startConfirming(t, {
        store: await STORES[kind](t), dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop', required })
      })
      const token = await tokenFor(start)
      const use = async () => (await new Browser(start.app).post(REGISTER, { token, password: ADA.password })).json()

      isDown = true
      t.equal((await use()).code, 'internal_error')
      const user = await start.app.auth.findUser({ email: ADA.email })
      t.ok(user)
      isDown = false
      t.equal((await use()).userId, user?.userId, 'the same form in the same minute signs in')
      await start.app.auth.deleteUser(user?.userId ?? '')
      t.equal((await use()).code, 'invalid_token')
    })

    t.test('a link whose user `onSignIn` refused can be tried again', async t => {
      let admits = false
      const onSignIn = (): void => { if (!admits) throw new SignInRefused('not_yet') }
      const start = await startConfirming(t, { store: await STORES[kind](t), onSignIn })
      const token = await tokenFor(start)
      const refused = await start.browser.post(REGISTER, { token, password: ADA.password })
      admits = true

      const answer = await start.browser.post(REGISTER, { token, password: ADA.password })

      t.strictSame([refused.json().code, answer.statusCode], ['not_yet', 201])
    })
  })
}

t.test('a password without a token is refused, as is a token without a password, and an address that is none', async t => {
  const start = await startConfirming(t)
  const { browser } = start
  const token = await tokenFor(start)
  for (const [what, body, code] of [
    ['a password without a token', ADA, 'invalid_request'],
    ['nothing', {}, 'invalid_request'],
    ['no address', { email: 'ada' }, 'invalid_email'],
    ['a token without a password', { token }, 'invalid_request'],
    ['a token with an empty password', { token, password: '' }, 'invalid_request'],
    ['a role that is not allowed', { token, password: ADA.password, role: 'admin' }, 'claim_not_allowed']
  ] as const) {
    const answer = await browser.post(REGISTER, body)
    t.equal(answer.json().code, code, what)
  }
  t.equal(await start.app.auth.findUser({ email: ADA.email }), null)
  t.strictSame((await mailsInTheEnd(start)).map(({ kind }) => kind), ['register'])
})

t.test('onSignIn refuses a user, who is deleted and registers later by the same link', async t => {
  let isOpen = false
  const start = await startConfirming(t, { onSignIn: () => { if (!isOpen) throw new SignInRefused('not_invited') } })
  const token = await tokenFor(start)

  t.equal((await start.browser.post(REGISTER, { token, password: ADA.password })).json().code, 'not_invited')
  t.equal(await start.app.auth.findUser({ email: ADA.email }), null)
  isOpen = true
  t.equal((await start.browser.post(REGISTER, { token, password: ADA.password })).statusCode, 201)
})

t.test('the page of a registration offers the roles of the application, and shows what is wrong', async t => {
  const start = await startConfirming(t, {}, { registration: { roles: ['reader', '<b>'] } })
  const { browser } = start
  const token = await tokenFor(start)

  const page = await browser.get(`${REGISTER}?token=${token}`, { accept: 'text/html' })
  t.equal(page.statusCode, 200)
  t.match(page.body, /<option>reader<\/option>\n*<option>&#60;b&#62;<\/option>/)
  t.match(page.body, ADA.email)
  const [form = { action: '', fields: {} }] = formsOn(page.body)
  const weak = await browser.submit(form.action, { ...form.fields, name: '', password: 'short', role: '' })
  t.equal(weak.statusCode, 400)
  t.strictSame(formsOn(weak.body), [form], 'the page again')
  const done = await browser.submit(form.action, { ...form.fields, name: '', password: ADA.password, role: 'reader' })
  t.strictSame([done.statusCode, done.headers.location], [303, '/'])
  t.match((await browser.get('/me')).json().principal.claims, { role: 'reader', email: ADA.email })
  const spent = await browser.get(`${REGISTER}?token=forged`, { accept: 'text/html' })
  t.strictSame([spent.statusCode, formsOn(spent.body)], [401, []])
})

t.test('without roles the page of a registration has no field for one', async t => {
  const start = await startConfirming(t)
  const page = await start.browser.get(`${REGISTER}?token=${await tokenFor(start)}`, { accept: 'text/html' })
  t.notMatch(page.body, /<select/)
})

t.test('forms of the application ask for the link, and register on its own page', async t => {
  const start = await startConfirming(t, {}, { pages: { register: '/join' } })
  const { browser, mails } = start

  const asked = await browser.submit(REGISTER, { email: ADA.email, password: '', next: '/look-into-your-mail' })
  t.strictSame([asked.statusCode, asked.headers.location], [303, '/look-into-your-mail'])
  const { token } = await mails.next('register')
  const { statusCode, headers } = await browser.get(`${REGISTER}?token=${token}`)
  t.strictSame([statusCode, headers.location], [302, `/join?token=${token}`])
  const referer = 'https://app.example/register'
  const failed = await browser.submit(REGISTER, { email: 'ada' }, { referer })
  t.strictSame([failed.statusCode, failed.headers.location], [303, '/register?error=invalid_email'])
})
