/** The script of pages with passkeys, under the policy that they have, and what real authenticators make of the options. */
import { hash, randomUUID } from 'node:crypto'
import formBody from '@fastify/formbody'
import Fastify from 'fastify'
import type { CDPSession, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { Factor } from '../../lib/accounts/account.js'
import { readResponse } from '../../lib/features/passkeys/ceremonies.js'
import { PASSKEY_SCRIPT } from '../../lib/features/passkeys/script.js'
import { Passkeys } from '../../lib/passkeys.js'
import { freePort } from '../helpers/loopback.js'
import { isSoon } from '../helpers/soon.js'
import { startChromium } from './chromium.js'

const USER_ID = randomUUID()
const USER = { userId: USER_ID, email: 'ada@example.com', name: 'Ada' }

const POLICY = `default-src 'none'; script-src 'sha256-${hash('sha256', PASSKEY_SCRIPT, 'base64')}'; connect-src 'self'; form-action 'self'; base-uri 'none'`

const form = (kind: string, content = `<button>${kind}</button>`): string => `
<form method="post" action="/${kind === 'autofill' ? 'login' : kind}" data-passkey="${kind}" data-options="/options" hidden>
  <input type="hidden" name="response">${content}
  <p data-passkey-exists hidden>exists</p><p data-passkey-failed hidden>failed</p>
</form>`

/** An application with one user, which keeps their passkeys. */
interface Shop {
  origin: string
  rpId: string
  factors: Factor[]
  /** The ceremonies for which there were options. */
  asked: string[]
  /** What the routes of forms were sent. */
  sent: string[]
  /** The field by which the script says that it asked by itself. */
  again: Array<string | undefined>
  /** Refuses options where it is a status. */
  refusal: number | null
  /** What a page has besides its forms. */
  more: string
}

async function startShop (t: Test): Promise<Shop> {
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const ceremonies = new Passkeys({ name: 'Shop' }).ceremonies({ baseUrl: origin, trustedOrigins: new Set() })
  const shop: Shop = { origin, rpId: 'localhost', factors: [], asked: [], sent: [], again: [], refusal: null, more: '' }
  const challenges = new Map<string, string>()
  const app = Fastify()
  await app.register(formBody)
  app.get<{ Querystring: { forms?: string } }>('/', async (request, reply) => {
    const forms = (request.query.forms ?? '').split(' ').map(kind => form(kind)).join('')
    return reply.type('text/html').header('content-security-policy', POLICY).send(`<!doctype html><meta charset="utf-8"><title>Shop</title>
<input autocomplete="username webauthn" name="email">${forms}<p data-passkey-missing>missing</p>${shop.more}
<script type="module">${PASSKEY_SCRIPT}</script>`)
  })
  app.post<{ Body: { for: string } }>('/options', async ({ body }, reply) => {
    shop.asked.push(body.for)
    if (shop.refusal !== null) return reply.code(shop.refusal).send({ error: 'rate_limited' })
    const made = new Map([
      ['register', () => ceremonies.registrationOptions(USER, shop.factors)],
      ['login', () => ceremonies.requestOptions()],
      ['factor', () => ceremonies.requestOptions(shop.factors)]
    ]).get(body.for)?.()
    if (made === undefined) return reply.code(400).send()
    challenges.set(made.challenge, body.for)
    return made.options
  })
  app.post<{ Params: { kind: string }, Body: { response: string, again?: string } }>('/:kind', async ({ params: { kind }, body }, reply) => {
    shop.sent.push(kind)
    shop.again.push(body.again)
    const response = readResponse(body.response)
    const challenge = response?.challenge ?? ''
    if (response === null || challenges.get(challenge) !== kind) {
      return reply.type('text/html').send(`<title>refused</title>${body.response}`)
    }
    challenges.delete(challenge)
    if (kind === 'register') {
      shop.factors.push(await ceremonies.verifyRegistration(response, { challenge, name: null }))
    } else {
      const factor = shop.factors.find(({ id }) => id === response.id) ?? null
      await ceremonies.verifyAssertion(response, { challenge, factor, userId: USER_ID })
    }
    return reply.type('text/html').send(`<title>${kind} done</title>`)
  })
  await app.listen({ host: '127.0.0.1', port })
  t.teardown(() => app.close())
  return shop
}

/** What an authenticator can do; by default all that a phone can. */
interface Device {
  hasResidentKey?: boolean
  hasUserVerification?: boolean
  isUserVerified?: boolean
  automaticPresenceSimulation?: boolean
}

interface Visitor {
  page: Page
  devices: CDPSession
  add: (device?: Device) => Promise<string>
  open: (forms: string) => Promise<void>
  /** How often pages asked the browser for a passkey. */
  gets: () => number
  /** What they asked for: a passkey in a field (`conditional`), or one now. */
  mediations: string[]
  /** What the page complained about, such as its policy. */
  complaints: string[]
}

const chromium = startChromium()

async function startVisitor (t: Test, shop: Shop): Promise<Visitor> {
  const context = await (await chromium).newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  const devices = await context.newCDPSession(page)
  await devices.send('WebAuthn.enable')
  const complaints: string[] = []
  page.on('console', message => { if (message.type() === 'error' && !message.text().includes('status of')) complaints.push(message.text()) })
  page.on('pageerror', error => complaints.push(String(error)))
  const mediations: string[] = []
  await page.exposeFunction('told', (mediation: string) => { mediations.push(mediation) })
  await page.addInitScript(`{
    const { get } = CredentialsContainer.prototype
    CredentialsContainer.prototype.get = function (options) { const got = get.call(this, options); told(String(options.mediation)); return got }
  }`)
  return {
    page,
    devices,
    gets: () => mediations.length,
    mediations,
    complaints,
    open: async forms => { await page.goto(`${shop.origin}/?${new URLSearchParams({ forms })}`) },
    add: async device => {
      const { authenticatorId } = await devices.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          protocol: 'ctap2',
          transport: 'internal',
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
          ...device
        }
      })
      return authenticatorId
    }
  }
}

/** Waits for the answer to a form. */
async function answered (t: Test, page: Page, title: string): Promise<void> {
  await page.waitForURL(({ pathname }) => pathname !== '/')
  t.equal(await page.title(), title)
}

t.test('a passkey is added, signs in and is asked for by plain forms, under a strict policy', async t => {
  const shop = await startShop(t)
  const { page, add, open, complaints } = await startVisitor(t, shop)
  await add()
  await open('register login factor')
  t.notOk(await page.getByText('missing').isVisible())

  await page.getByRole('button', { name: 'register' }).click()
  await answered(t, page, 'register done')
  t.match(shop.factors, [{ kind: 'passkey', data: { backupEligible: false, transports: ['internal'] } }])
  for (const kind of ['login', 'factor']) {
    await open('register login factor')
    await page.getByRole('button', { name: kind }).click()
    await answered(t, page, `${kind} done`)
  }
  t.strictSame(shop.asked, ['register', 'login', 'factor'])
  t.strictSame(complaints, [])
})

t.test('on a page that answers for a challenge that is gone, the first form that is shown is sent once more, by itself', async t => {
  const shop = await startShop(t)
  const { page, add, open, complaints } = await startVisitor(t, shop)
  await add()
  await open('register')
  await page.getByRole('button').click()
  await answered(t, page, 'register done')

  shop.more = '<p data-passkey-again>expired</p>'
  await open('autofill login factor')
  await answered(t, page, 'login done')
  t.strictSame([shop.asked, shop.sent], [['register', 'login'], ['register', 'login']])
  t.strictSame(shop.again, [undefined, 'on'])
  t.strictSame(complaints, [])
})

t.test('a second passkey of the same device is not made, and the page says so', async t => {
  const shop = await startShop(t)
  const { page, add, open } = await startVisitor(t, shop)
  await add()
  await open('register')
  await page.getByRole('button').click()
  await answered(t, page, 'register done')

  await open('register')
  await page.getByRole('button').click()
  await page.getByText('exists').waitFor()
  t.notOk(await page.getByText('failed').isVisible())
  t.equal(shop.factors.length, 1)
})

t.test('an authenticator that cannot verify its user, or keeps no passkeys, makes none', async t => {
  for (const device of [{ isUserVerified: false }, { hasUserVerification: false, isUserVerified: false }, { hasResidentKey: false }]) {
    const shop = await startShop(t)
    const { page, add, open } = await startVisitor(t, shop)
    await add(device)
    await open('register')
    await page.getByRole('button').click()
    await page.getByText('failed').waitFor()
    t.strictSame(shop.sent, [], JSON.stringify(device))
  }
})

t.test('a passkey is offered in the field of the e-mail, and options are renewed while nobody picks one', async t => {
  const shop = await startShop(t)
  const { page, add, open, devices, gets, mediations, complaints } = await startVisitor(t, shop)
  const authenticatorId = await add()
  await open('register')
  await page.getByRole('button').click()
  await answered(t, page, 'register done')
  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false })

  await page.clock.install()
  await open('autofill login')
  t.ok(await isSoon(async () => gets() === 1))
  t.notOk(await page.getByRole('button', { name: 'autofill' }).isVisible(), 'it has no button')
  await page.clock.runFor(239_000)
  t.strictSame(shop.asked, ['register', 'login'])
  await page.clock.runFor(2000)
  t.ok(await isSoon(async () => gets() === 2), 'a minute before the first ones end')
  t.strictSame(shop.asked, ['register', 'login', 'login'])

  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: true })
  await page.clock.runFor(241_000)
  await answered(t, page, 'login done')
  t.strictSame(shop.asked, ['register', 'login', 'login', 'login'])
  t.strictSame(shop.sent, ['register', 'login'])
  t.ok(mediations.every(mediation => mediation === 'conditional'))
  t.strictSame(complaints, [])
})

t.test('options are not renewed while the page is hidden, but when it is seen again', async t => {
  const shop = await startShop(t)
  const { page, add, open, gets } = await startVisitor(t, shop)
  await add({ automaticPresenceSimulation: false })
  await page.addInitScript("Object.defineProperty(document, 'hidden', { get: () => self.isHidden === true })")
  await page.clock.install()
  await open('autofill')
  t.ok(await isSoon(async () => gets() === 1))

  await page.evaluate(() => { Reflect.set(globalThis, 'isHidden', true) })
  await page.clock.runFor(900_000)
  t.strictSame(shop.asked, ['login'])
  await page.evaluate(() => { Reflect.set(globalThis, 'isHidden', false) })
  await page.dispatchEvent('body', 'visibilitychange', { bubbles: true })
  t.ok(await isSoon(async () => gets() === 2))
  t.strictSame(shop.asked, ['login', 'login'])
})

t.test('nothing ends what the button has begun but the button', async t => {
  const shop = await startShop(t)
  const { page, add, open, devices, gets, complaints } = await startVisitor(t, shop)
  const authenticatorId = await add()
  await open('register')
  await page.getByRole('button').click()
  await answered(t, page, 'register done')
  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false })

  // The browser says late whether it has passkeys in fields; and options are renewed while the field offers some.
  await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = () => new Promise(resolve => { self.answer = resolve })')
  await page.clock.install()
  const button = page.getByRole('button', { name: 'login' })
  const answer = (isAvailable: boolean): Promise<void> => page.evaluate(is => { Reflect.apply(Reflect.get(globalThis, 'answer'), null, [is]) }, isAvailable)
  for (const isOffered of [false, true]) {
    shop.asked = []
    const before = gets()
    await open('autofill login')
    if (isOffered) {
      await answer(true)
      t.ok(await isSoon(async () => gets() === before + 1))
    }
    await button.click()
    t.ok(await isSoon(async () => gets() === before + (isOffered ? 2 : 1)))
    if (!isOffered) await answer(true)
    await page.clock.runFor(900_000)
    await answer(true)
    t.strictSame(shop.asked, isOffered ? ['login', 'login'] : ['login'])
  }

  await button.click()
  t.ok(await isSoon(async () => gets() === 4))
  t.notOk(await page.locator('[data-passkey-failed]:visible').count(), 'what was ended by the button did not fail')
  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: true })
  await button.click()
  await answered(t, page, 'login done')
  t.strictSame(shop.asked, ['login', 'login', 'login', 'login'])
  t.strictSame(complaints, [])
})

t.test('the button ends what the field offers, and the field offers it again when the user gives up', async t => {
  const shop = await startShop(t)
  const { page, add, open, devices, gets } = await startVisitor(t, shop)
  const authenticatorId = await add()
  await open('register')
  await page.getByRole('button').click()
  await answered(t, page, 'register done')
  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false })
  await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await open('autofill login')
  t.ok(await isSoon(async () => gets() === 1))

  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: true })
  const failed = page.locator('form[data-passkey=login]').getByText('failed')
  await page.getByRole('button', { name: 'login' }).click()
  await failed.waitFor()
  t.ok(await isSoon(async () => gets() === 3))
  t.strictSame(shop.asked, ['register', 'login', 'login', 'login'])

  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false })
  await page.getByRole('button', { name: 'login' }).click()
  await failed.waitFor({ state: 'hidden' })
  t.ok(await isSoon(async () => gets() === 4))
  await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
  await devices.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: true })
  await page.getByRole('button', { name: 'login' }).click()
  await answered(t, page, 'login done')
})

t.test('refused options are left to the route of the form, and end what a field would offer', async t => {
  const shop = await startShop(t)
  shop.refusal = 429
  const { page, add, open, gets, complaints } = await startVisitor(t, shop)
  await add()
  const refused = page.waitForResponse(/\/options$/)
  await open('autofill login')
  await refused
  await page.getByRole('button', { name: 'login' }).click()
  await answered(t, page, 'refused')
  t.strictSame(shop.asked, ['login', 'login'], 'the field sent nothing')
  t.equal(await page.textContent('body'), '{}')
  t.strictSame(shop.sent, ['login'])
  t.equal(gets(), 0)
  t.strictSame(complaints, [])
})

t.test('a browser without a part of the interface has the button, or a sentence in its place', async t => {
  const shop = await startShop(t)
  const without: Array<[string, boolean]> = [
    ['delete window.PublicKeyCredential', false],
    ['delete PublicKeyCredential.parseCreationOptionsFromJSON', false],
    ['delete PublicKeyCredential.parseRequestOptionsFromJSON', false],
    ['delete PublicKeyCredential.isConditionalMediationAvailable', true],
    ['PublicKeyCredential.isConditionalMediationAvailable = async () => false', true],
    ['for (const name of ["AllAcceptedCredentials", "UnknownCredential", "CurrentUserDetails"]) delete PublicKeyCredential["signal" + name]', true]
  ]
  shop.more = '<p data-signal-unknown-credential=\'{"rpId":"localhost","credentialId":"AAAA"}\'></p>'
  for (const [script, isSupported] of without) {
    const { page, add, open, complaints } = await startVisitor(t, shop)
    await add()
    await page.addInitScript(script)
    shop.asked = []
    await open('register autofill')

    t.equal(await page.getByRole('button', { name: 'register' }).isVisible(), isSupported, script)
    t.equal(await page.getByText('missing').isVisible(), !isSupported, script)
    if (isSupported) {
      await page.getByRole('button', { name: 'register' }).click()
      await answered(t, page, 'register done')
    }
    if (!script.startsWith('for')) t.notOk(shop.asked.includes('login'), script)
    t.strictSame(complaints, [], script)
    shop.factors = []
  }
})

t.test('password managers are told which passkeys there are, and of whom', async t => {
  const shop = await startShop(t)
  const { page, add, open, devices } = await startVisitor(t, shop)
  const authenticatorId = await add()
  const kept = async (): Promise<Array<string | undefined>> => {
    const { credentials } = await devices.send('WebAuthn.getCredentials', { authenticatorId })
    return credentials.map(({ userName }) => userName)
  }
  await open('register')
  await page.getByRole('button').click()
  await answered(t, page, 'register done')
  const userId = Buffer.from(USER_ID.replaceAll('-', ''), 'hex').toString('base64url')
  const said = async (attribute: string, value: object): Promise<void> => {
    shop.more = `<p ${attribute}="${JSON.stringify({ rpId: shop.rpId, ...value }).replaceAll('"', '&quot;')}"></p>`
    await open('register')
  }

  const updated = new Promise(resolve => devices.once('WebAuthn.credentialUpdated', resolve))
  await said('data-signal-current-user-details', { userId, name: 'ada@new.example', displayName: 'Ada' })
  await updated
  t.strictSame(await kept(), ['ada@new.example'])
  await said('data-signal-all-accepted-credentials', { userId, allAcceptedCredentialIds: shop.factors.map(({ id }) => id) })
  t.strictSame(await kept(), ['ada@new.example'])

  for (const [attribute, value] of [
    ['data-signal-all-accepted-credentials', { userId, allAcceptedCredentialIds: [] }],
    ['data-signal-unknown-credential', { credentialId: '' }]
  ] as const) {
    const deleted = new Promise(resolve => devices.once('WebAuthn.credentialDeleted', resolve))
    await said(attribute, 'credentialId' in value ? { credentialId: shop.factors[0]?.id } : value)
    await deleted
    t.strictSame(await kept(), [], attribute)
    shop.factors = []
    shop.more = ''
    await open('register')
    await page.getByRole('button').click()
    await answered(t, page, 'register done')
  }
})
