/** Second factors in Chromium, with the codes of the authenticator program oathtool, in an application with the headers of @fastify/helmet. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { Pages, type Texts, ar, de, en, es, fr, ja } from '../../lib/pages.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { startProvider } from '../../lib/testing.js'
import { advanceClock } from '../helpers/clock.js'
import { DATA_SECRET } from '../helpers/factor-app.js'
import { some } from '../helpers/thorough.js'
import { startChromium } from './chromium.js'
import { HOME, type Shop, primaryButtonsOn, send, signInTitle, startShop, titleOf, widthsThatScroll } from './page-steps.js'
import { Visitor, barriersOn } from './visitor.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const MINUTE_MS = 60_000

const chromium: Browser = await startChromium()

interface FactorServer extends Shop {
  /** Whether each user needs a second factor from now on; at first only those who have one do. */
  requireFactor: (isRequired: boolean) => void
}

async function start (t: Test, languages: readonly [Texts, ...Texts[]] = [en]): Promise<FactorServer> {
  const provider = await startProvider({ user: { sub: '1', ...ADA, email_verified: true } })
  t.teardown(() => provider.close())
  let isRequired = false
  const shop = await startShop(t, {
    providers: [provider.provider()],
    local: { mails: { limits: false } },
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired, trustedBrowser: { days: 30 } }),
    pages: new Pages({ name: 'Shop', languages: [...languages] })
  }, app => {
    const recent = app.auth.requireRecent({ within: 60, secondFactor: true })
    app.get('/vault', { preHandler: recent }, async (_request, reply) => reply.type('text/html').send(HOME.replaceAll('Home', 'Vault')))
  })
  return { ...shop, requireFactor (now) { isRequired = now } }
}

/** The code that an authenticator program shows, at the time that this process has. */
function codeOf (secret: string): string {
  return execFileSync('oathtool', ['--totp', '--base32', `--now=@${Math.floor(Date.now() / 1000)}`, secret], { encoding: 'utf8' }).trim()
}

/** The next code of the program, half a minute later. */
function nextCodeOf (t: Test, secret: string): string {
  advanceClock(t, MINUTE_MS / 2)
  return codeOf(secret)
}

/** Scans what a page has for an authenticator app: the secret. */
async function scan (page: Page): Promise<string> {
  const uri = new URL(await page.locator('a[href^="otpauth:"]').getAttribute('href') ?? '')
  return uri.searchParams.get('secret') ?? ''
}

/** Writes down the recovery codes on a page, and goes on. */
async function writeDown (t: Test, page: Page, { factors, common }: Texts): Promise<string[]> {
  await page.waitForSelector('.codes')
  t.equal(await titleOf(page), factors.recoveryTitle)
  const codes = await page.locator('.codes li').allInnerTexts()
  t.equal(new Set(codes).size, 10)
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: factors.saveCodes }).click()
  const file = readFileSync(await (await download).path(), 'utf8')
  t.equal(file, `Shop: ${factors.recoveryTitle}\n\n${codes.join('\n')}\n`, 'the file that the browser saved')
  const way = page.getByRole('link', { name: common.continue })
  t.equal(await way.count(), 0, 'only a user who has saved them goes on')
  await page.getByLabel(factors.codesSaved).check()
  await way.click()
  return codes
}

/** Registers, confirms the address and stays on the page of the factors. */
async function register (page: Page, { url, mails }: FactorServer, texts: Texts, user = ADA): Promise<void> {
  await page.goto(`${url}/auth/pages/register?next=/auth/pages/factors`)
  await send(page, texts.titles.register, user)
  await page.goto((await mails.next('verify-email')).url ?? '')
  await send(page, texts.links.verifySubmit)
  await page.goto(`${url}/auth/pages/factors`)
}

/** Sets up the program on the page of the factors, and ends there. */
async function enrol (t: Test, page: Page, texts: Texts): Promise<{ secret: string, codes: string[] }> {
  await send(page, texts.factors.setUp)
  const secret = await scan(page)
  await send(page, texts.confirm.submit, { code: codeOf(secret) })
  return { secret, codes: await writeDown(t, page, texts) }
}

/** Sends e-mail and password. */
async function signIn (page: Page, { url }: FactorServer, texts: Texts, user = ADA): Promise<void> {
  await page.goto(`${url}/auth/pages/sign-in?next=/vault`)
  await send(page, texts.signIn.title, user)
}

async function signOut (page: Page, { url }: FactorServer, texts: Texts): Promise<void> {
  await page.goto(`${url}/auth/pages/account`)
  await send(page, texts.common.signOut)
  await page.waitForURL(/sign-in/)
}

/** What the browser noted, but for the status of pages that show a failure. */
function complaintsOf ({ complaints }: Visitor): string[] {
  return complaints.filter(complaint => !/status of 40[013] .*\/auth\/local\//.test(complaint))
}

t.test('scenario 9: a user scans the code, confirms it and is asked for a code at each sign-in, by password and by provider', async t => {
  const server = await start(t)
  const [ada, other, third] = [
    await Visitor.with(chromium, t, { scripts: false }), await Visitor.with(chromium, t, { scripts: false }),
    await Visitor.with(chromium, t)
  ]
  const page = await ada.open(server.url)
  await register(page, server, en)
  await page.getByRole('button', { name: en.factors.setUp }).click()
  const secret = await scan(page)
  t.equal((await page.locator('main code').innerText()).replaceAll(' ', ''), secret, 'the key to enter by hand')
  t.equal(await page.locator('.qr svg').isVisible(), true)
  await send(page, en.confirm.submit, { code: codeOf(secret) })
  await writeDown(t, page, en)
  t.equal(await page.getByRole('status').innerText(), en.common.saved)
  await server.mails.next('factor-added')

  await signOut(page, server, en)
  await signIn(page, server, en)
  t.equal(await titleOf(page), en.factors.secondTitle)
  const code = nextCodeOf(t, secret)
  await send(page, en.confirm.submit, { code: ` ${code.slice(0, 3)} ${code.slice(3)}` })
  t.equal(await titleOf(page), 'Vault')

  const elsewhere = await other.open(server.url)
  await signIn(elsewhere, server, en)
  await send(elsewhere, en.confirm.submit, { code })
  t.equal(await elsewhere.getByRole('alert').innerText(), en.errors.invalid_code, 'the same code again')
  await elsewhere.goto(`${server.url}/vault`)
  t.equal(await titleOf(elsewhere), signInTitle(en), 'no user is signed in')

  const byProvider = await third.open(`${server.url}/auth/pages/sign-in?next=/vault`)
  await byProvider.getByRole('link', { name: 'Continue with Test' }).click()
  t.equal(await titleOf(byProvider), en.factors.secondTitle)
  await send(byProvider, en.confirm.submit, { code: nextCodeOf(t, secret) })
  t.equal(await titleOf(byProvider), 'Vault')
  for (const visitor of [ada, other, third]) t.strictSame(complaintsOf(visitor), [])
})

t.test('scenario 10: a user who has lost the phone signs in by recovery codes, and by the operator once those are used', async t => {
  const server = await start(t)
  const { app, mails, url } = server
  const visitor = await Visitor.with(chromium, t, { scripts: false })
  const page = await visitor.open(url)
  await register(page, server, en)
  const { secret, codes: [first = '', ...others] } = await enrol(t, page, en)
  const bySecond = async (code: string) => {
    await signOut(page, server, en)
    await signIn(page, server, en)
    await send(page, en.confirm.submit, { code })
  }

  await bySecond(first)
  t.equal(page.url(), `${url}/vault`, 'nine are left')
  await mails.next('recovery-code-used')
  await bySecond(first.toLowerCase())
  t.equal(await page.getByRole('alert').innerText(), en.errors.invalid_code)
  await send(page, en.confirm.submit, { code: others[0] ?? '' })
  t.equal(await titleOf(page), 'Vault')
  await page.goto(`${url}/auth/pages/factors`)
  t.equal(await page.getByText('Codes left: 8').count(), 1)

  await send(page, en.factors.newCodes)
  const renewed = await writeDown(t, page, en)
  await mails.next('recovery-codes-renewed')
  await bySecond(others[1] ?? '')
  t.equal(await page.getByRole('alert').innerText(), en.errors.invalid_code, 'the old ones are useless')
  await send(page, en.confirm.submit, { code: renewed[0] ?? '' })
  t.equal(await titleOf(page), 'Vault')
  for (const [used, code] of renewed.slice(1).entries()) {
    advanceClock(t, 2 * MINUTE_MS)
    await bySecond(code)
    const left = 8 - used
    t.equal(page.url(), `${url}/vault${left > 2 ? '' : `?recovery_codes_left=${left}`}`)
  }
  advanceClock(t, 15 * MINUTE_MS)
  await bySecond(renewed[9] ?? '')
  t.equal(await page.getByRole('alert').innerText(), en.errors.invalid_code, 'all are used')

  const { userId = '' } = await app.auth.findUser({ email: ADA.email }) ?? {}
  await app.auth.resetFactors(userId)
  t.match(await mails.next('factor-removed'), { to: ADA.email })
  await signIn(page, server, en)
  t.equal(page.url(), `${url}/auth/pages/factors?error=second_factor_missing&next=%2Fvault`, 'signed in, and asked to set up another app')
  await send(page, en.factors.setUp)
  t.not(await scan(page), secret)
  t.strictSame(complaintsOf(visitor), [])
})

for (const texts of some([en, de, fr, es, ar, ja], 2)) {
  t.test(`in ${texts.language} a user lives with a second factor without scripts, with the headers of helmet`, async t => {
    const server = await start(t, [en, de, fr, es, ar, ja])
    const { url, mails } = server
    const visitor = await Visitor.with(chromium, t, { scripts: false, language: texts.language })
    const page = await visitor.open(url)
    await register(page, server, texts)
    await signOut(page, server, texts)

    server.requireFactor(true)
    await signIn(page, server, texts)
    t.equal(await titleOf(page), texts.factors.requiredTitle)
    await page.goto(`${url}/auth/pages/account`)
    t.equal(await titleOf(page), signInTitle(texts), 'no user is signed in before')
    await signIn(page, server, texts)
    await send(page, texts.factors.setUp)
    const secret = await scan(page)
    const { code: mailCode } = await mails.next('enrolment')
    await send(page, texts.confirm.submit, { code: codeOf(secret), mailCode: '12345' })
    t.equal(await page.getByRole('alert').innerText(), texts.errors.invalid_code)
    await send(page, texts.confirm.submit, { code: codeOf(secret), mailCode })
    await writeDown(t, page, texts)
    t.equal(await titleOf(page), 'Vault')

    await signOut(page, server, texts)
    await signIn(page, server, texts)
    t.equal(await titleOf(page), texts.factors.secondTitle)
    await page.getByRole('checkbox').check()
    await send(page, texts.confirm.submit, { code: nextCodeOf(t, secret) })
    t.equal(await titleOf(page), 'Vault')
    await signOut(page, server, texts)
    await signIn(page, server, texts)
    t.equal(await titleOf(page), texts.confirm.title, 'the sign-in was spared the code, the vault is not')
    t.equal(await page.getByLabel(texts.common.password).count(), 0)
    await send(page, texts.confirm.submit, { code: '000000' })
    t.equal(await page.getByRole('alert').innerText(), texts.errors.invalid_code)
    await send(page, texts.confirm.submit, { code: nextCodeOf(t, secret) })
    t.equal(await titleOf(page), 'Vault')

    await page.goto(`${url}/auth/pages/account`)
    await page.getByRole('link', { name: texts.factors.title }).click()
    await send(page, texts.factors.newCodes)
    await writeDown(t, page, texts)
    t.equal(await page.getByRole('status').innerText(), texts.common.saved)
    const remove = texts.account.removeMethod.replace('{provider}', texts.factors.app)
    await send(page, remove)
    t.equal(await page.getByRole('alert').innerText(), texts.errors.forbidden)
    server.requireFactor(false)
    advanceClock(t, 11 * MINUTE_MS)
    await send(page, remove)
    t.equal(await titleOf(page), texts.confirm.title)
    await send(page, texts.confirm.submit, { code: nextCodeOf(t, secret) })
    await send(page, remove)
    t.equal(await page.getByRole('status').innerText(), texts.common.saved)
    await mails.next('factor-removed')
    t.equal(await page.getByRole('button', { name: texts.factors.setUp }).count(), 1)
    t.strictSame(complaintsOf(visitor), [])
  })
}

/** Opens each page of the factors, as each user may see it. */
async function eachPage (
  t: Test,
  server: FactorServer,
  texts: Texts,
  act: (page: Page, name: string) => Promise<void>
): Promise<Visitor> {
  const { url, mails } = server
  const visitor = await Visitor.with(chromium, t, { language: texts.language })
  const page = await visitor.open(url)
  const user = { ...ADA, email: `${texts.language}.ada.of.a.very.long.name@subdomain.example.com` }
  await register(page, server, texts, user)
  await act(page, 'factors, without one')
  await page.goto(`${url}/auth/local/totp`)
  await act(page, 'totp, to begin')
  await signOut(page, server, texts)

  server.requireFactor(true)
  await signIn(page, server, texts, user)
  await act(page, 'second-factor, to begin')
  await send(page, texts.factors.setUp)
  const secret = await scan(page)
  const { code: mailCode } = await mails.next('enrolment')
  await act(page, 'totp')
  await send(page, texts.confirm.submit, { code: '12345', mailCode })
  await act(page, 'totp, with a failure')
  await send(page, texts.confirm.submit, { code: codeOf(secret), mailCode })
  await act(page, 'recovery codes')
  await page.getByRole('checkbox').check()
  await act(page, 'recovery codes, saved')
  await page.goto(`${url}/auth/pages/factors`)
  await act(page, 'factors')
  await page.goto(`${url}/auth/pages/confirm`)
  await act(page, 'confirm')
  await signOut(page, server, texts)
  await signIn(page, server, texts, user)
  await act(page, 'second-factor')
  await send(page, texts.confirm.submit, { code: '12345' })
  await act(page, 'second-factor, with a failure')
  server.requireFactor(false)
  return visitor
}

t.test('no page of the factors has barriers, light and dark, on a desk and on a phone, from left to right and from right to left', async t => {
  const server = await start(t, [en, ar])
  for (const texts of [en, ar]) {
    const visitor = await eachPage(t, server, texts, async (page, name) => {
      t.strictSame(await barriersOn(page), [], `${texts.language}: ${name}`)
      t.ok((await primaryButtonsOn(page)).length <= 1, `${name}: one primary button at most`)
      const separators = await page.getByText(texts.signIn.or, { exact: true }).count()
      t.equal(separators, name === 'confirm' ? 1 : 0, `${name}: what separates its ways`)
      t.equal(await page.locator('html').getAttribute('dir'), texts.direction)
    })
    t.strictSame(complaintsOf(visitor), [])
  }
})

t.test('no page of the factors scrolls sideways in any language, also at 200 %', async t => {
  const server = await start(t, [en, de, fr, es, ar, ja])
  for (const texts of some([en, de, fr, es, ar, ja], 2)) {
    await eachPage(t, server, texts, async (page, name) => {
      t.equal(await page.locator('html').getAttribute('lang'), texts.language)
      t.strictSame(await widthsThatScroll(page), [], `${texts.language}: ${name}`)
    })
  }
})
