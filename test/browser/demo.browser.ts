import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { ExampleProcess, settingsFor, startExample } from '../examples/example-process.js'
import { startChromium } from './chromium.js'
import { Visitor, barriersOn } from './visitor.js'

const SCREENSHOTS = process.env.SCREENSHOTS

t.setTimeout(300_000)

// Providers that nobody goes to, for the sign-in page to show.
const settings = { ...await settingsFor(t), GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: 'secret', GITHUB_CLIENT_ID: 'id', GITHUB_CLIENT_SECRET: 'secret' }
const url = `http://localhost:${settings.PORT}`
await startExample(t, settings)
const chromium = await startChromium(t)

const ADA = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
const EMMY = { name: 'Emmy Noether', email: 'emmy@example.com', password: 'rings and invariants' }
const GRACE = { name: 'Grace Hopper', email: 'grace@example.com' }

/** What people do with the example. Browsers have nothing to complain about in the end. */
function scene (name: string, act: (t: Test, arrive: (path?: string) => Promise<{ visitor: Visitor, page: Page }>) => Promise<void>): void {
  t.test(name, async t => {
    const visitors: Visitor[] = []
    await act(t, async (path = '/login') => {
      const visitor = await Visitor.with(chromium, t)
      visitors.push(visitor)
      return { visitor, page: await visitor.open(url + path) }
    })
    t.strictSame(visitors.flatMap(({ complaints }) => complaints), [])
  })
}

async function register (page: Page, { name, email, password }: typeof ADA): Promise<void> {
  const form = page.getByRole('form', { name: 'New here?' })
  await form.getByLabel('Name').fill(name)
  await form.getByLabel('E-mail').fill(email)
  await form.getByLabel('Password').fill(password)
  await form.getByRole('button', { name: 'Register' }).click()
}

async function signIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  const form = page.getByRole('form', { name: 'With your password' })
  await form.getByLabel('E-mail').fill(email)
  await form.getByLabel('Password').fill(password)
  await form.getByRole('button', { name: 'Sign in' }).click()
}

/** At the development provider. */
async function consent (page: Page, { name, email }: { name: string, email: string }): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Continue' }).click()
}

/** Where a page has led to, without the origin. */
async function arrival (page: Page, path: string): Promise<string> {
  await page.waitForURL(target => target.origin === url && target.pathname === path)
  return page.url().slice(url.length)
}

async function show (page: Page, name: string): Promise<void> {
  if (SCREENSHOTS !== undefined) await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true })
}

scene('somebody registers, signs out, mistypes the password, and signs in', async (t, arrive) => {
  const { page } = await arrive()
  t.strictSame(await page.getByRole('navigation', { name: 'Providers' }).getByRole('link').allTextContents(), ['Continue with Google', 'Continue with GitHub', 'Continue with dev'])
  t.strictSame(await barriersOn(page), [])
  await show(page, 'login')

  await register(page, ADA)
  t.equal(await arrival(page, '/'), '/')
  t.ok(await page.getByRole('heading', { name: 'Your account' }).isVisible())
  t.ok(await page.getByText('Ada Lovelace').isVisible())
  t.strictSame(await barriersOn(page), [])

  await page.getByRole('button', { name: 'Sign out' }).click()
  await arrival(page, '/login')
  await signIn(page, { ...ADA, password: 'an engine of analogy' })
  await page.getByRole('alert').waitFor()
  t.equal(await page.getByRole('alert').textContent(), 'The e-mail or the password is wrong.')
  t.strictSame(await barriersOn(page), [])

  await signIn(page, ADA)
  t.equal(await arrival(page, '/'), '/')
})

scene('nobody needs a mouse', async (t, arrive) => {
  const { page } = await arrive()
  const focused = async () => page.evaluate('document.activeElement.getAttribute("name") ?? document.activeElement.textContent')
  const walkTo = async (name: string) => {
    for (let steps = 0; steps < 30 && await focused() !== name; steps++) await page.keyboard.press('Tab')
    t.equal(await focused(), name)
  }

  await walkTo('email')
  await page.keyboard.type(ADA.email)
  await walkTo('password')
  await page.keyboard.type(ADA.password)
  await page.keyboard.press('Enter')
  t.equal(await arrival(page, '/'), '/')

  await walkTo('Sign out')
  await page.keyboard.press('Space')
  t.equal(await arrival(page, '/login'), '/login')
})

scene('somebody comes by way of the development provider, or changes his mind there', async (t, arrive) => {
  const { page } = await arrive()
  await page.getByRole('link', { name: 'Continue with dev' }).click()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: 'Cancel' }).click()
  t.equal(await arrival(page, '/login'), '/login?error=access_denied')
  t.equal(await page.getByRole('alert').textContent(), 'You cancelled the sign-in.')

  await page.getByRole('link', { name: 'Continue with dev' }).click()
  await consent(page, GRACE)
  t.equal(await arrival(page, '/'), '/')
  t.ok(await page.getByText('You signed in with dev').isVisible())
})

scene('somebody adds a way to sign in, uses it and removes it; that of somebody else is refused', async (t, arrive) => {
  const { page } = await arrive()
  await register(page, EMMY)
  await arrival(page, '/')
  t.equal(await page.getByRole('button', { name: 'Remove' }).count(), 0, 'the only way in stays')

  await page.getByRole('link', { name: 'Add dev' }).click()
  await consent(page, GRACE)
  t.equal(await arrival(page, '/'), '/?error=already_linked')
  t.equal(await page.getByRole('alert').textContent(), 'This sign-in belongs to another account.')

  await page.getByRole('link', { name: 'Add dev' }).click()
  await consent(page, { name: 'Emmy', email: 'amalie@example.com' })
  t.equal(await arrival(page, '/'), '/')
  await page.getByText('amalie@example.com').waitFor()
  await page.getByRole('button', { name: 'Fetch and verify a token' }).click()
  await page.getByText('svc-auth-local').waitFor()
  t.match(await page.getByRole('status').textContent(), /"email": "emmy@example\.com"/)
  t.strictSame(await barriersOn(page), [])
  await show(page, 'account')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('link', { name: 'Continue with dev' }).click()
  await consent(page, { name: 'Emmy', email: 'amalie@example.com' })
  await arrival(page, '/')
  t.ok(await page.getByText(EMMY.email).isVisible(), 'she is the same user')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn(page, EMMY)
  await arrival(page, '/')
  await page.getByRole('button', { name: 'Remove dev' }).click()
  await page.getByRole('link', { name: 'Add dev' }).waitFor()
  t.equal(await page.getByText('amalie@example.com').count(), 0)
})

scene('an administrator grants a role, and its holder sees it with the next look at his account', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  const { page: emmys } = await arrive()
  await signIn(emmys, EMMY)
  await arrival(emmys, '/')
  t.equal(await new ExampleProcess(t, ['grant.ts', ADA.email, 'role=admin'], settings).end(), 0)

  await page.getByRole('link', { name: 'Administration' }).click()
  t.strictSame(await barriersOn(page), [])
  const row = page.getByRole('listitem').filter({ hasText: EMMY.email })
  await row.getByLabel(`Role of ${EMMY.email}`).selectOption('editor')
  await row.getByRole('button', { name: 'Grant' }).click()
  await row.getByRole('button', { name: 'Withdraw' }).waitFor()
  t.strictSame(await barriersOn(page), [])
  await show(page, 'admin')
  await emmys.reload()
  t.equal(await emmys.getByRole('definition').filter({ hasText: 'editor' }).count(), 1)

  await row.getByRole('button', { name: 'Withdraw' }).click()
  await row.getByRole('button', { name: 'Withdraw' }).waitFor({ state: 'detached' })
  await emmys.reload()
  t.equal(await emmys.getByRole('definition').filter({ hasText: 'editor' }).count(), 0)

  await page.getByRole('button', { name: 'Make a link' }).click()
  await page.getByRole('heading', { name: 'Your invitation' }).waitFor()
  t.strictSame(await barriersOn(page), [])
})

scene('after the sign-out the back button shows nothing private', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  await page.getByRole('link', { name: 'Administration' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await arrival(page, '/login')

  for (let steps = 0; steps < 2; steps++) {
    await page.goBack()
    t.notMatch(await page.content(), /ada@example\.com|Lovelace/, page.url())
  }
})

scene('two tabs sign in at once', async (t, arrive) => {
  const { visitor, page } = await arrive()
  // The tabs of somebody who has a session are of one session.
  await page.getByRole('link', { name: 'Continue with dev' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await arrival(page, '/login')
  const other = await visitor.open(`${url}/login`)

  await Promise.all([page, other].map(async page => page.getByRole('link', { name: 'Continue with dev' }).click()))
  for (const tab of [other, page]) {
    await consent(tab, GRACE)
    t.equal(await arrival(tab, '/'), '/')
    t.ok(await tab.getByText(GRACE.email).first().isVisible())
  }
})

scene('what is not there, or not for somebody, is said on a page that everybody can read', async (t, arrive) => {
  const { visitor, page } = await arrive('/nowhere')
  t.strictSame(await barriersOn(page), [])
  await page.goto(`${url}/login`)
  await signIn(page, EMMY)
  await page.getByRole('link', { name: 'Administration' }).click()
  await page.getByRole('heading', { name: 'Not for this account' }).waitFor()
  t.strictSame(await barriersOn(page), [])

  // The browser notes that the pages came with 404 and 403.
  t.equal(visitor.complaints.splice(0).filter(complaint => !/status of 40[34]/.test(complaint)).length, 0)
})
