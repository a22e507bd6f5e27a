/** Passkeys on the pages of the plugin, with virtual authenticators of Chromium, under the headers of @fastify/helmet. */
import type { Browser, CDPSession, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { AuthPluginOptions } from '../../lib/index.js'
import { type Texts, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { ADA } from '../helpers/mail-app.js'
import { startChromium } from './chromium.js'
import { REMEMBERED, type Shop, send, startShop, titleOf } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const { factors } = en

const chromium: Browser = await startChromium()

async function start (t: Test, options: Omit<AuthPluginOptions, 'local'> = {}): Promise<Shop> {
  return startShop(t, {
    session: REMEMBERED, dataSecret: DATA_SECRET, passkeys: new Passkeys({ name: 'Shop' }), ...options
  })
}

/** The authenticators of a page. */
class Devices {
  readonly #cdp: CDPSession

  constructor (cdp: CDPSession) {
    this.#cdp = cdp
  }

  static async of (page: Page): Promise<Devices> {
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('WebAuthn.enable', { enableUI: false })
    return new Devices(cdp)
  }

  async add ({ isResident = true, verifiesUser = true, transport = 'internal' as 'internal' | 'usb' } = {}): Promise<string> {
    const { authenticatorId } = await this.#cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport,
        hasResidentKey: isResident,
        hasUserVerification: verifiesUser,
        isUserVerified: verifiesUser,
        automaticPresenceSimulation: true
      }
    })
    return authenticatorId
  }

  async remove (authenticatorId: string): Promise<void> {
    await this.#cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
  }

  /** Whether the user touches the device when it asks. */
  async touch (authenticatorId: string, enabled: boolean): Promise<void> {
    await this.#cdp.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
  }

  /** Whether the device recognizes the user. */
  async recognize (authenticatorId: string, isUserVerified: boolean): Promise<void> {
    await this.#cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
  }

  async names (authenticatorId: string): Promise<string[]> {
    const { credentials } = await this.#cdp.send('WebAuthn.getCredentials', { authenticatorId })
    return credentials.map(({ userName = '' }) => userName)
  }

  /** Resolves once a signal of a page has changed a passkey. */
  async signalled (event: 'WebAuthn.credentialDeleted' | 'WebAuthn.credentialUpdated'): Promise<void> {
    await new Promise(resolve => { this.#cdp.once(event, resolve) })
  }
}

/** Opens the page of the factors as a user who has just registered. */
async function register ({ url }: Shop, visitor: Visitor): Promise<Page> {
  const page = await visitor.open(`${url}/auth/pages/register?next=/auth/pages/factors`)
  await send(page, en.titles.register, ADA)
  await page.waitForURL(`${url}/auth/pages/factors`)
  return page
}

/** Opens that page as a user with a passkey on their phone. */
async function withPasskey (t: Test, name?: string) {
  const server = await start(t)
  const visitor = await Visitor.with(chromium, t)
  const page = await register(server, visitor)
  const devices = await Devices.of(page)
  const phone = await devices.add()
  await addPasskey(page, name)
  await page.getByRole('status').waitFor()
  return { server, visitor, page, devices, phone }
}

async function addPasskey (page: Page, name = ''): Promise<void> {
  await page.locator('[data-passkey=register] [name=name]').fill(name)
  await page.getByRole('button', { name: factors.addPasskey }).click()
}

/** Adds a passkey by the code from the e-mail, which is mistyped first. */
async function addByMailCode (page: Page, { mails }: Shop): Promise<void> {
  await page.getByRole('button', { name: factors.addPasskey }).click()
  const { code } = await mails.next('enrolment')
  await page.getByLabel(factors.mailCode).fill('000000')
  await page.getByRole('button', { name: factors.addPasskey }).click()
  await page.getByText(en.errors.invalid_code).waitFor()
  await page.getByLabel(factors.mailCode).fill(code)
  await page.getByRole('button', { name: factors.addPasskey }).click()
}

/** Signs the user out and waits for the page on which they sign in. */
async function signOut (page: Page, { url }: Shop): Promise<void> {
  await page.goto(`${url}/auth/pages/account`)
  await send(page, en.common.signOut)
  await page.waitForURL(/\/auth\/pages\/sign-in/)
}

async function signedInAs (page: Page, { url }: Shop): Promise<string> {
  await page.goto(`${url}/auth/pages/account`)
  return titleOf(page)
}

t.test('a user adds a passkey, and signs in without typing anything', async t => {
  const { server, visitor, page, devices, phone } = await withPasskey(t, 'Phone')
  t.match(await page.locator('main li').first().innerText(), 'Phone')
  t.strictSame(await devices.names(phone), [ADA.email])
  t.strictSame(await barriersOn(page), [])
  await page.locator('summary', { hasText: factors.rename }).click()
  t.strictSame(await barriersOn(page), [])
  await send(page, en.account.nameSubmit, { name: 'My phone' })
  await page.getByRole('button', { name: 'Remove My phone' }).waitFor()

  await devices.touch(phone, false)
  await signOut(page, server)
  // The page that the sign-out led to would sign in, too.
  await page.goto(server.url)
  await devices.touch(phone, true)
  await page.goto(`${server.url}/auth/pages/sign-in?next=/auth/pages/account`)
  await page.waitForURL(`${server.url}/auth/pages/account`)
  t.equal(await titleOf(page), en.account.title)
  t.strictSame(visitor.complaints, [], 'no violation of a policy')
})

/** An application of passkeys and mails, without passwords. */
async function startWithoutPasswords (t: Test): Promise<Shop> {
  return startShop(t, {
    session: REMEMBERED,
    dataSecret: DATA_SECRET,
    passkeys: new Passkeys({ name: 'Shop' }),
    rateLimit: {},
    local: { registration: { passkey: true, roles: ['member'] }, password: false, signInByMail: true, mails: { limits: false } }
  })
}

/** Asks for the link to register, on the page for that. */
async function askForLink (page: Page, { url, mails }: Shop, texts: Texts): Promise<string> {
  await page.goto(`${url}/auth/pages/sign-in?next=/auth/pages/account`)
  await page.getByRole('link', { name: texts.signIn.register }).click()
  await send(page, texts.forgotPassword.submit, { email: ADA.email })
  await page.waitForURL(/link-sent/)
  return (await mails.next('register')).url
}

for (const texts of [en, de, es, fr, ar, ja]) {
  t.test(`a user registers with a passkey alone, and signs in by it (${texts.language})`, async t => {
    const server = await startWithoutPasswords(t)
    const visitor = await Visitor.with(chromium, t, { language: texts.language })
    const page = await visitor.open(server.url)
    const devices = await Devices.of(page)
    const phone = await devices.add()

    await page.goto(await askForLink(page, server, texts))
    t.strictSame(await barriersOn(page), [])
    await page.setViewportSize({ width: 320, height: 640 })
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, 'nothing is wider than the page')
    await page.getByLabel(texts.common.optionalName).fill('Ada')
    await page.getByLabel(texts.common.role).selectOption('member')
    await page.getByLabel(texts.common.remember).check()
    await devices.recognize(phone, false)
    await page.getByRole('button', { name: texts.register.passkey }).click()
    await page.getByText(texts.factors.passkeyFailed).waitFor()
    await devices.recognize(phone, true)
    await page.getByRole('button', { name: texts.register.passkey }).click()
    await page.waitForURL(`${server.url}/auth/pages/account`)

    t.strictSame(await devices.names(phone), [ADA.email])
    const user = await server.app.auth.findUser({ email: ADA.email })
    t.match(user, { name: 'Ada', emailVerified: true, claims: { role: 'member' } })
    t.ok((await visitor.cookies()).some(({ name, expires }) => name === 'svc_session' && expires > Date.now() / 1000 + 20 * 86_400))
    t.notMatch(await page.locator('main').innerText(), new RegExp(texts.common.password, 'i'))
    t.strictSame(await barriersOn(page), [])
    await devices.touch(phone, false)
    await send(page, texts.common.signOut)
    await page.waitForURL(/\/auth\/pages\/sign-in/)
    await page.goto(server.url)
    await devices.touch(phone, true)
    await page.goto(`${server.url}/auth/pages/sign-in?next=/auth/pages/account`)
    await page.waitForURL(`${server.url}/auth/pages/account`)
    t.strictSame(visitor.complaints, [], 'no violation of a policy')
  })
}

t.test('without scripts, the page of the link says what needs one, and a mail registers', async t => {
  const server = await startWithoutPasswords(t)
  const visitor = await Visitor.with(chromium, t, { scripts: false })
  const page = await visitor.open(server.url)
  await page.goto(await askForLink(page, server, en))
  t.equal(await page.getByRole('button', { name: en.register.passkey }).count(), 0)
  t.match(await page.locator('main').innerText(), factors.noScript)

  await page.getByRole('button', { name: en.mail.ask }).click()
  await page.getByLabel(factors.mailCode).fill(String((await server.mails.next('sign-in')).code))
  await page.getByRole('button', { name: en.confirm.submit }).click()
  await page.waitForURL(`${server.url}/auth/pages/account`)
  t.match(await server.app.auth.findUser({ email: ADA.email }), { emailVerified: true })
})

t.test('where passwords are offered too, the name is sent with the passkey', async t => {
  const server = await startShop(t, {
    dataSecret: DATA_SECRET,
    passkeys: new Passkeys({ name: 'Shop' }),
    local: { registration: { passkey: true, roles: ['member'] } }
  })
  const visitor = await Visitor.with(chromium, t)
  const page = await visitor.open(server.url)
  await (await Devices.of(page)).add()
  await page.goto(await askForLink(page, server, en))
  t.strictSame(await barriersOn(page), [])
  await page.getByLabel(en.common.optionalName).fill('Ada')
  await page.getByLabel(en.common.role).selectOption('member')
  await page.getByRole('button', { name: en.register.passkey }).click()
  await page.waitForURL(`${server.url}/auth/pages/account`)
  t.match(await server.app.auth.findUser({ email: ADA.email }), { name: 'Ada', claims: { role: 'member' } })
})

t.test('the button signs in where the browser offers nothing by itself; the user is remembered', async t => {
  const { server, visitor, page } = await withPasskey(t)
  // As Firefox.
  await page.addInitScript('delete PublicKeyCredential.isConditionalMediationAvailable')
  await signOut(page, server)
  t.strictSame(await barriersOn(page), [])

  await page.locator('[name=remember]').first().check()
  await page.getByRole('button', { name: factors.usePasskey }).click()
  await page.waitForURL(`${server.url}/`)

  t.equal(await signedInAs(page, server), en.account.title)
  const [cookie] = (await visitor.cookies()).filter(({ name }) => name === 'svc_session')
  t.ok(cookie !== undefined && cookie.expires > Date.now() / 1000 + 86_400, 'the box of the other form was sent along')
  t.strictSame(visitor.complaints, [])
})

t.test('a sign-in that the device refuses says so, and can be repeated', async t => {
  const { server, page, devices, phone } = await withPasskey(t)
  // Otherwise the field of the e-mail signs in by itself as soon as the device recognizes the user.
  await page.addInitScript('delete PublicKeyCredential.isConditionalMediationAvailable')
  await devices.recognize(phone, false)
  await signOut(page, server)
  const button = page.getByRole('button', { name: factors.usePasskey })

  await button.click()
  await page.getByText(factors.passkeyFailed).waitFor()
  await devices.recognize(phone, true)
  await button.click()
  await page.waitForURL(`${server.url}/`)
})

t.test('with two devices, one is removed: its passkey leaves the password manager, and is not accepted', async t => {
  const { visitor, page, devices, phone } = await withPasskey(t, 'Phone')

  await addPasskey(page, 'Phone again')
  await page.getByText(en.errors.passkey_exists).waitFor()
  await devices.touch(phone, false)
  const key = await devices.add({ transport: 'usb' })
  await addPasskey(page, 'Key')
  await page.getByRole('button', { name: 'Remove Key' }).waitFor()
  t.strictSame([await devices.names(phone), await devices.names(key)], [[ADA.email], [ADA.email]])

  const deleted = devices.signalled('WebAuthn.credentialDeleted')
  await page.getByRole('button', { name: 'Remove Phone' }).click()
  await deleted
  t.strictSame([await devices.names(phone), await devices.names(key)], [[], [ADA.email]], 'the signal of the list')
  t.strictSame(visitor.complaints, [])
})

t.test('attack 97: a passkey that was removed elsewhere is refused in words, and leaves the password manager', async t => {
  const { server, visitor, page, devices, phone } = await withPasskey(t)
  const { userId = '' } = await server.app.auth.findUser({ email: ADA.email }) ?? {}
  await server.app.auth.resetFactors(userId)

  const deleted = devices.signalled('WebAuthn.credentialDeleted')
  await page.goto(`${server.url}/auth/pages/sign-in`)

  await page.getByText(en.errors.unknown_passkey).waitFor()
  await deleted
  t.strictSame(await devices.names(phone), [], 'the signal of the page')
  t.strictSame(visitor.complaints.filter(text => !text.includes('401')), [])
})

t.test('a device that keeps no passkey, or does not verify the user, is refused before anything is sent', async t => {
  const server = await start(t)
  const page = await register(server, await Visitor.with(chromium, t))
  const devices = await Devices.of(page)
  for (const lacking of [{ isResident: false }, { verifiesUser: false }]) {
    const device = await devices.add({ ...lacking, transport: 'usb' })
    await addPasskey(page)
    await page.getByText(factors.passkeyFailed).waitFor()
    await devices.remove(device)
    await page.goto(`${server.url}/auth/pages/factors`)
  }
  const { userId = '' } = await server.app.auth.findUser({ email: ADA.email }) ?? {}
  t.strictSame(await server.app.auth.factors(userId), [])
})

t.test('a new name of the account reaches the password manager', async t => {
  const { server, page, devices, phone } = await withPasskey(t)
  const { userId = '' } = await server.app.auth.findUser({ email: ADA.email }) ?? {}
  const store = server.app.auth.store
  await store.change({ userId }, {}, account => ({
    result: null, ...(account !== null && { account: { ...account, email: 'countess@example.com' } })
  }))
  const updated = devices.signalled('WebAuthn.credentialUpdated')
  await page.goto(`${server.url}/auth/pages/account`)
  await updated
  t.strictSame(await devices.names(phone), ['countess@example.com'])
})

t.test('a passkey is the second factor, and the user authenticates again by it', async t => {
  const server = await start(t, {
    secondFactor: new SecondFactor({ issuer: 'Shop', required: () => true, trustedBrowser: { days: 30 } })
  })
  const visitor = await Visitor.with(chromium, t)
  const page = await visitor.open(`${server.url}/auth/pages/register?next=/auth/pages/factors`)
  const devices = await Devices.of(page)
  const phone = await devices.add()
  await send(page, en.titles.register, ADA)
  await page.getByRole('heading', { name: factors.requiredTitle }).waitFor()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: factors.addPasskey }).click()
  await page.waitForURL(`${server.url}/auth/pages/factors`)

  await devices.touch(phone, false)
  await signOut(page, server)
  await send(page, en.signIn.title, ADA)
  await page.getByRole('heading', { name: factors.secondTitle }).waitFor()
  t.strictSame(await barriersOn(page), [])
  await devices.touch(phone, true)
  await page.locator('[name=trust]').check()
  await page.getByRole('button', { name: factors.usePasskey }).click()
  await page.waitForURL(`${server.url}/`)
  t.ok((await visitor.cookies()).some(({ name }) => name === 'svc_trusted'))

  await page.goto(`${server.url}/auth/pages/confirm?next=/auth/pages/account`)
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: factors.usePasskey }).click()
  await page.waitForURL(`${server.url}/auth/pages/account`)
  t.strictSame(visitor.complaints, [])
})

t.test('a user who existed before types the code from the e-mail as well', async t => {
  let isRequired = false
  const server = await start(t, { secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired }) })
  const visitor = await Visitor.with(chromium, t)
  const page = await register(server, visitor)
  await page.goto((await server.mails.next('verify-email')).url ?? '')
  await page.getByRole('button', { name: en.links.verifySubmit }).click()
  await signOut(page, server)
  const devices = await Devices.of(page)
  await devices.add()
  isRequired = true
  await send(page, en.signIn.title, ADA)

  await addByMailCode(page, server)
  await page.waitForURL(`${server.url}/`)
  t.equal(await signedInAs(page, server), en.account.title)
})

t.test('a user who has lost all their passkeys adds one by the code from the e-mail', async t => {
  for (const options of [{}, { secondFactor: new SecondFactor({ issuer: 'Shop' }) }]) {
    const server = await start(t, options)
    const visitor = await Visitor.with(chromium, t)
    const page = await register(server, visitor)
    await page.goto((await server.mails.next('verify-email')).url ?? '')
    await page.getByRole('button', { name: en.links.verifySubmit }).click()
    const devices = await Devices.of(page)
    const lost = await devices.add()
    await page.goto(`${server.url}/auth/pages/factors`)
    await addPasskey(page, 'Phone')
    await page.getByRole('status').waitFor()
    await devices.remove(lost)
    await signOut(page, server)
    await send(page, en.signIn.title, ADA)
    await page.waitForURL(`${server.url}/`)
    await devices.add()

    await page.goto(`${server.url}/auth/pages/factors`)
    await page.getByRole('link', { name: factors.lost }).click()
    t.strictSame(await barriersOn(page), [])
    t.equal(await page.getByRole('button', { name: factors.setUp }).count(), 'secondFactor' in options ? 1 : 0)
    await addByMailCode(page, server)
    await page.waitForURL(`${server.url}/auth/pages/factors`)
    t.equal(await page.locator('form[action$="passkeys/remove"]').count(), 2)
    t.strictSame(visitor.complaints.filter(complaint => !complaint.includes('401')), [])
  }
})

t.test('attack 147: after a sign-in by password the browser makes a passkey by itself, and goes on', async t => {
  const server = await start(t, { passkeys: new Passkeys({ name: 'Shop', createOnSignIn: true }) })
  const visitor = await Visitor.with(chromium, t)
  const page = await register(server, visitor)
  await signOut(page, server)
  const devices = await Devices.of(page)
  const phone = await devices.add({ verifiesUser: false })
  // Chromium makes one only for a password that its own password manager has filled in: the rest is as it is.
  await page.addInitScript(`
    const { create } = CredentialsContainer.prototype
    CredentialsContainer.prototype.create = function ({ mediation, ...options }) {
      if (mediation !== 'conditional') throw new Error('the user would be asked')
      return create.call(this, options)
    }
  `)

  await page.goto(`${server.url}/auth/pages/sign-in?next=/auth/pages/factors`)
  await send(page, en.signIn.title, ADA)
  await page.waitForURL(`${server.url}/auth/pages/factors`)

  t.equal(await page.locator('main li').count(), 1)
  t.strictSame(await devices.names(phone), [ADA.email])
  t.strictSame(visitor.complaints, [], 'no violation of a policy')
})

t.test('a browser that makes no passkey by itself goes on at once', async t => {
  const server = await start(t, { passkeys: new Passkeys({ name: 'Shop', createOnSignIn: true }) })
  const visitor = await Visitor.with(chromium, t)
  const page = await register(server, visitor)
  await signOut(page, server)
  const between = page.waitForRequest(/\/auth\/pages\/create-passkey/)
  await page.goto(`${server.url}/auth/pages/sign-in?next=/auth/pages/account`)
  await send(page, en.signIn.title, ADA)

  await between
  await page.waitForURL(`${server.url}/auth/pages/account`)
  t.equal(await titleOf(page), en.account.title)
})

t.test('a browser without scripts, or without what the script needs, says so and takes the password', async t => {
  const server = await start(t)
  await register(server, await Visitor.with(chromium, t))
  for (const scripts of [false, true]) {
    const page = await (await Visitor.with(chromium, t, { scripts })).open('about:blank')
    await page.addInitScript('delete PublicKeyCredential.parseRequestOptionsFromJSON')
    await page.goto(`${server.url}/auth/pages/sign-in`)
    const sentence = scripts ? factors.passkeyMissing : factors.noScript
    t.match(await page.locator('body').innerText(), sentence)
    t.notOk(await page.getByRole('button', { name: factors.usePasskey }).isVisible())
    await send(page, en.signIn.title, ADA)
    await page.waitForURL(`${server.url}/`)
    await page.goto(`${server.url}/auth/pages/factors`)
    t.match(await page.locator('body').innerText(), sentence)
    t.notOk(await page.getByRole('button', { name: factors.addPasskey }).isVisible())
  }
})

t.test('the options of an idle page are renewed, and those of a hidden one when it is shown', async t => {
  const server = await start(t)
  const page = await (await Visitor.with(chromium, t)).open('about:blank')
  await (await Devices.of(page)).add()
  let asked = 0
  page.on('request', request => { if (request.url().endsWith('/options')) asked++ })
  const show = (isShown: boolean) => page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isShown} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
  await page.clock.install()
  const first = page.waitForResponse(/options$/)
  await page.goto(`${server.url}/auth/pages/sign-in`)
  await first
  const renewed = page.waitForResponse(/options$/)
  await page.clock.runFor(241_000)
  await renewed
  t.equal(asked, 2)

  await show(false)
  await page.clock.runFor(241_000)
  t.equal(asked, 2)
  const shown = page.waitForResponse(/options$/)
  await show(true)
  await shown
  t.equal(asked, 3)
})
