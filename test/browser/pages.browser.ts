/** The pages of the plugin in Chromium, in an application with the headers of @fastify/helmet. */
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { Pages, type Texts, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { OwnProvider } from '../helpers/own-provider.js'
import { some } from '../helpers/thorough.js'
import { startChromium } from './chromium.js'
import { REMEMBERED, type Shop, primaryButtonsOn, send, signInTitle, startShop, titleOf, widthsThatScroll } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const ADA = { email: 'ada.of.a.very.long.name@subdomain.example.com', password: 'correct horse' }
const NEW_PASSWORD = 'battery staple'
const NEW_EMAIL = 'countess@example.com'
const PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9H0z"/></svg>'
const PUBLIC = ['sign-in', 'sign-in?error=access_denied', 'register', 'forgot-password', 'link-sent']
const PRIVATE = ['account', 'confirm', 'sign-in']
/** The rows of the account page whose forms are shown. */
const ROWS = ['name', 'email', 'password', 'methods', 'devices', 'delete']

const chromium: Browser = await startChromium()

async function start (t: Test, pages: Partial<ConstructorParameters<typeof Pages>[0]> = {}): Promise<Shop> {
  return startShop(t, {
    session: REMEMBERED,
    providers: [new OwnProvider('github'), new OwnProvider('a-company-with-a-long-name')],
    pages: new Pages({ name: 'Shop', links: [{ label: 'Privacy', href: '/privacy' }], ...pages })
  }, app => {
    app.get('/logo.svg', async (_request, reply) => reply.type('image/svg+xml').send(PICTURE))
    app.get('/auth.css', async (_request, reply) => reply.type('text/css').send(':root { --auth-back: rgb(1, 2, 3) }'))
  })
}

/** Opens each page, as a visitor and as a user, and those behind the links of mails. */
async function eachPage (
  { url, mails }: Shop,
  texts: Texts,
  visitor: Visitor,
  act: (page: Page, name: string) => Promise<void>
): Promise<void> {
  const page = await visitor.open(url)
  const show = async (name: string, address = `${url}/auth/pages/${name}`) => {
    await page.goto(address)
    await act(page, name)
  }
  const email = `${texts.language}.${ADA.email}`
  for (const name of PUBLIC) await show(name)
  await show('register')
  await send(page, texts.titles.register, { email, password: ADA.password, name: 'Ada' })
  await page.waitForURL(`${url}/`)
  for (const name of [...PRIVATE, ...ROWS.map(row => `account?open=${row}`)]) await show(name)
  await show('verify-email', (await mails.next('verify-email')).url ?? '')
  await page.goto(`${url}/auth/pages/account`)
  await send(page, texts.account.emailSubmit, { email: `new.${email}`, current: ADA.password })
  await show('change-email', (await mails.next('change-email')).url ?? '')
  await page.goto(`${url}/auth/pages/forgot-password`)
  await send(page, texts.forgotPassword.submit, { email })
  await show('reset-password', (await mails.next('reset-password')).url ?? '')
}

t.test('no page has barriers, light and dark, on a desk and on a phone, from left to right and from right to left', async t => {
  const server = await start(t, { languages: [en, ar] })
  for (const texts of [en, ar]) {
    const visitor = await Visitor.with(chromium, t, { language: texts.language })
    await eachPage(server, texts, visitor, async (page, name) => {
      t.strictSame(await barriersOn(page), [], `${texts.language}: ${name}`)
      t.equal(await page.locator('html').getAttribute('dir'), texts.direction)
    })
    t.strictSame(visitor.complaints, [])
  }
})

t.test('in Arabic a page runs from right to left, and an address that is typed from left to right', async t => {
  const { url } = await start(t)
  const page = await (await Visitor.with(chromium, t, { language: 'ar-EG' })).open(`${url}/auth/pages/register`)
  t.equal(await titleOf(page), ar.titles.register)
  const directions = await page.evaluate("['h1', '[name=name]', '[name=email]'].map(name => getComputedStyle(document.querySelector(name)).direction)")
  t.strictSame(directions, ['rtl', 'rtl', 'ltr'])
  const { x = 0, width = 0 } = await page.getByText(ar.register.signIn).boundingBox() ?? {}
  t.ok(x + width > 512, 'a link begins on the right')
})

t.test('no page scrolls sideways in any language, also at 200 %', async t => {
  const server = await start(t, { languages: [en, de, fr, es, ar, ja] })
  for (const texts of some([de, en, ja, es, ar, fr], 2)) {
    const visitor = await Visitor.with(chromium, t, { language: texts.language })
    await eachPage(server, texts, visitor, async (page, name) => {
      t.equal(await page.locator('html').getAttribute('lang'), texts.language)
      t.strictSame(await widthsThatScroll(page), [], `${texts.language}: ${name}`)
    })
  }
})

t.test('attack 141: a visit on 127.0.0.1 goes on at localhost, where its forms work and next survives', async t => {
  const { url } = await start(t)
  const elsewhere = url.replace('localhost', '127.0.0.1')
  const visitor = await Visitor.with(chromium, t, { scripts: false })
  const page = await visitor.open(`${elsewhere}/auth/pages/register?next=/auth/pages/account`)
  t.equal(page.url(), `${url}/auth/pages/register?next=%2Fauth%2Fpages%2Faccount&redirected=true`)
  await send(page, en.titles.register, { ...ADA, name: 'Ada' })
  t.equal(page.url(), `${url}/auth/pages/account`)
  await send(page, en.common.signOut)

  await page.goto(`${elsewhere}/auth/pages/sign-in?next=/auth/pages/account`)
  await send(page, en.signIn.title, { ...ADA, password: NEW_PASSWORD })
  t.equal(await page.getByRole('alert').innerText(), en.errors.invalid)
  await send(page, en.signIn.title, ADA)
  t.equal(page.url(), `${url}/auth/pages/account`)
})

for (const texts of some([en, de, fr, es, ar, ja], 2)) {
  t.test(`in ${texts.language} an account lives from registration to deletion without scripts, with the headers of helmet`, async t => {
    const { url, mails } = await start(t)
    const visitor = await Visitor.with(chromium, t, { scripts: false, language: texts.language })
    const page = await visitor.open(`${url}/auth/pages/register?next=/auth/pages/account`)
    await send(page, texts.titles.register, { ...ADA, name: 'Ada' })
    t.equal(await titleOf(page), texts.account.title)
    await page.goto((await mails.next('verify-email')).url ?? '')
    await send(page, texts.links.verifySubmit)

    await page.goto(`${url}/auth/pages/account`)
    await send(page, texts.account.nameSubmit, { name: 'Countess' })
    t.equal(await page.getByRole('status').innerText(), texts.common.saved)
    t.equal(await page.locator('[name=name]').inputValue(), 'Countess')
    await send(page, texts.account.passwordSubmit, { current: ADA.password, password: NEW_PASSWORD })
    t.equal(await page.getByRole('status').innerText(), texts.common.saved)
    await send(page, texts.account.emailSubmit, { email: NEW_EMAIL, current: NEW_PASSWORD })
    t.equal(await page.getByRole('status').innerText(), texts.common.sent)
    await page.goto((await mails.next('change-email')).url ?? '')
    await send(page, texts.confirm.submit)

    await page.goto(`${url}/auth/pages/account`)
    await send(page, texts.common.signOut)
    t.equal(await titleOf(page), signInTitle(texts))
    await page.getByRole('link', { name: texts.signIn.forgot }).click()
    await send(page, texts.forgotPassword.submit, { email: NEW_EMAIL })
    t.equal(await titleOf(page), texts.forgotPassword.sentTitle)
    await page.goto((await mails.next('reset-password')).url ?? '')
    await send(page, texts.links.resetSubmit, { password: ADA.password })
    t.equal(await titleOf(page), signInTitle(texts))
    t.strictSame(visitor.complaints.splice(0), [], 'no violation of a policy')

    const now = { email: NEW_EMAIL, password: ADA.password }
    await send(page, texts.signIn.title, { ...now, password: NEW_PASSWORD })
    t.equal(await page.getByRole('alert').innerText(), texts.errors.invalid)
    await send(page, texts.signIn.title, now)
    await page.goto(`${url}/auth/pages/account`)
    await send(page, texts.account.deleteSubmit, { current: now.password })
    t.equal(await titleOf(page), signInTitle(texts))
    await send(page, texts.signIn.title, now)
    t.equal(await page.getByRole('alert').innerText(), texts.errors.invalid, 'the account is gone')
  })
}

t.test('a user changes their name and signs out with the keyboard alone', async t => {
  const { url } = await start(t)
  const page = await (await Visitor.with(chromium, t, { scripts: true })).open(`${url}/auth/pages/register?next=/auth/pages/account`)
  await send(page, en.titles.register, { ...ADA, name: 'Ada' })
  const focused = async () => page.evaluate('document.activeElement.name || document.activeElement.innerText.replaceAll(/\\s+/g, " ")')
  const walkTo = async (name: string) => {
    for (let steps = 0; steps < 20 && await focused() !== name; steps++) await page.keyboard.press('Tab')
    t.equal(await focused(), name)
  }

  await walkTo('Name Ada Change')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  t.equal(await focused(), 'name', 'the form comes next')
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('Countess')
  await page.keyboard.press('Enter')
  await page.getByRole('status').waitFor()
  await walkTo('Name Countess Change')
  await page.goto(`${url}/auth/pages/account`)
  await walkTo('Sign out')
  await page.keyboard.press('Space')
  await page.waitForURL(/sign-in/)
})

t.test('a page has one primary button at most, and its ways are separated by a word', async t => {
  const shop = await start(t)
  const visitor = await Visitor.with(chromium, t)
  await eachPage(shop, en, visitor, async (page, name) => {
    const primary = await primaryButtonsOn(page)
    const isForm = !/^(?:link-sent|account$|account\?done|account\?open=(?:methods|devices|delete))/.test(name)
    t.equal(primary.length, isForm ? 1 : 0, `${name}: ${primary.join()}`)
    if (name === 'sign-in?error=access_denied') t.equal(await page.getByText(en.signIn.or, { exact: true }).count(), 1)
  })
})

t.test('what is printed is dark on white, such as recovery codes, also where the screen is dark', async t => {
  const { url } = await start(t)
  const page = await (await Visitor.with(chromium, t)).open(`${url}/auth/pages/sign-in`)
  const colors = '(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.body))'
  await page.emulateMedia({ colorScheme: 'dark' })
  t.strictSame(await page.evaluate(colors), ['rgb(229, 231, 235)', 'rgb(11, 15, 23)'])
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' })
  t.strictSame(await page.evaluate(colors), ['rgb(31, 41, 55)', 'rgb(255, 255, 255)'])
})

t.test('the logo and the stylesheet of the application are loaded, and nothing else', async t => {
  const { url } = await start(t, { logo: '/logo.svg', stylesheet: '/auth.css' })
  const visitor = await Visitor.with(chromium, t)
  const page = await visitor.open(`${url}/auth/pages/sign-in`)

  t.equal(await page.evaluate('document.querySelector("img").naturalWidth > 0'), true)
  t.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(1, 2, 3)')
  t.equal(await page.locator('link[rel=icon]').getAttribute('href'), '/logo.svg')
  await t.rejects(page.addScriptTag({ content: 'document.title = "run"' }), 'the policy refuses scripts')
  t.match(visitor.complaints.splice(0), [/script/])
})
