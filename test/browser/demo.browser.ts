import type { Page } from 'playwright-core'
import t from 'tap'
import { totp } from '../../lib/testing.js'
import { ExampleProcess, settingsFor, startExample, withClock } from '../examples/example-process.js'
import { startChromium } from './chromium.js'
import { ACCOUNT, SIGN_IN, arrivalsAt, confirm, consent, openRow, register, scenesAt, signIn } from './demo-steps.js'
import { barriersOn, inEachLook } from './visitor.js'

const SCREENSHOTS = process.env.SCREENSHOTS

// Providers for the sign-in page to show; no test goes there.
const settings = { ...await settingsFor(t), GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: 'secret', GITHUB_CLIENT_ID: 'id', GITHUB_CLIENT_SECRET: 'secret' }
const url = `http://localhost:${settings.PORT}`
const example = await startExample(t, withClock(settings))
const scene = scenesAt(url, await startChromium())
const arrival = arrivalsAt(url)

const ADA = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
const EMMY = { name: 'Emmy Noether', email: 'emmy@example.com', password: 'rings and invariants' }
/** Emmy at the development provider. */
const AMALIE = { name: 'Emmy Noether', email: 'amalie@example.com' }
const GRACE = { name: 'Grace Hopper', email: 'grace@example.com' }

/** The authenticator app of Ada. */
let adasSecret = ''

/** What it shows at the time of the example, or half a minute later. */
function codeOf (secret: string, { isNext = false } = {}): string {
  return totp(secret, { step: example.hoursAhead * 120 + Number(isNext) })
}

/** Takes the pictures of a page: on a desk and on a phone, light and dark. */
async function show (page: Page, name: string): Promise<void> {
  if (SCREENSHOTS === undefined) return
  await page.mouse.move(0, 0)
  await inEachLook(page, async ({ device, colorScheme }) => {
    await page.screenshot({ path: `${SCREENSHOTS}/${name}-${device}-${colorScheme}.png`, fullPage: true })
  })
}

scene('a visitor writes a note, and has it when they register', async (t, arrive) => {
  const { page } = await arrive('/notes')
  await page.getByLabel('A note').fill('Buy oil')
  await page.getByRole('button', { name: 'Keep it' }).click()
  t.equal(await page.getByRole('status').textContent(), 'The note is kept.')
  t.strictSame(await barriersOn(page), [])
  await register(page, { name: 'Noor', email: 'noor@example.com', password: 'a note for later' })
  await page.getByRole('link', { name: 'Notes' }).click()
  t.ok(await page.getByRole('listitem').filter({ hasText: 'Buy oil' }).isVisible())
  t.strictSame(await barriersOn(page), [])
})

scene('a user registers, signs out, mistypes the password, and signs in', async (t, arrive) => {
  const { page } = await arrive('/')
  t.equal(await arrival(page, SIGN_IN), `${SIGN_IN}?next=%2F`)
  t.strictSame(
    await page.getByRole('link', { name: 'Continue with' }).allInnerTexts(),
    ['Continue with Google', 'Continue with GitHub', 'Continue with Dev Provider']
  )
  await show(page, 'sign-in')

  await register(page, ADA)
  t.equal(await arrival(page, '/'), '/')
  t.ok(await page.getByRole('heading', { name: 'Hello Ada Lovelace' }).isVisible())
  t.strictSame(await barriersOn(page), [])

  await page.getByRole('button', { name: 'Sign out' }).click()
  await arrival(page, SIGN_IN)
  await signIn(page, { ...ADA, password: 'an engine of analogy' })
  t.equal(await page.getByRole('alert').textContent(), 'The e-mail or the password is wrong.')
  await signIn(page, ADA)
  t.equal(await arrival(page, '/'), '/')
})

scene('a user signs in and out with the keyboard alone', async (t, arrive) => {
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
  await arrival(page, SIGN_IN)
})

scene('a user signs in with the development provider, or cancels there', async (t, arrive) => {
  const { page } = await arrive()
  await page.getByRole('link', { name: 'Continue with Dev Provider' }).click()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: 'Cancel' }).click()
  t.equal(await arrival(page, SIGN_IN), `${SIGN_IN}?error=access_denied`)
  t.equal(await page.getByRole('alert').textContent(), 'The sign-in was cancelled.')

  await page.getByRole('link', { name: 'Continue with Dev Provider' }).click()
  await consent(page, GRACE)
  t.equal(await arrival(page, '/'), '/')
  t.ok(await page.getByText('You signed in with dev-provider').isVisible())
})

scene('a user adds a sign-in method, uses it and removes it; that of another user is refused', async (t, arrive) => {
  const { page } = await arrive()
  await register(page, EMMY)
  await arrival(page, '/')
  await page.getByRole('link', { name: 'Your account' }).click()
  await openRow(page, 'Sign-in methods')

  await page.getByRole('button', { name: 'Add Dev Provider' }).click()
  await consent(page, GRACE)
  t.equal(await arrival(page, ACCOUNT), `${ACCOUNT}?open=methods&error=already_linked`)
  await example.advanceClock()
  await page.getByRole('button', { name: 'Add Dev Provider' }).click()
  await arrival(page, '/auth/pages/confirm')
  await confirm(page, EMMY.password)
  await arrival(page, ACCOUNT)
  await page.getByRole('button', { name: 'Add Dev Provider' }).click()
  await consent(page, AMALIE)
  await arrival(page, ACCOUNT)
  await page.getByText(AMALIE.email).waitFor()
  await page.goto(url + ACCOUNT)
  await show(page, 'account')

  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await arrival(page, SIGN_IN)
  await page.getByRole('link', { name: 'Continue with Dev Provider' }).click()
  await consent(page, AMALIE)
  await arrival(page, '/')
  await page.goto(url + ACCOUNT)
  t.ok(await page.getByText(EMMY.email).first().isVisible(), 'as the same user')
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await arrival(page, SIGN_IN)

  await signIn(page, EMMY)
  await arrival(page, '/')
  await page.goto(url + ACCOUNT)
  await openRow(page, 'Sign-in methods')
  await page.getByRole('button', { name: 'Remove Dev Provider' }).click()
  t.equal(await arrival(page, ACCOUNT), `${ACCOUNT}?open=methods`)
  await page.getByRole('button', { name: 'Add Dev Provider' }).waitFor()
  t.equal(await page.getByText(AMALIE.email).count(), 0)
})

scene('a user fetches a token for other services', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, EMMY)
  await arrival(page, '/')
  await page.getByRole('button', { name: 'Fetch and verify a token' }).click()
  await page.getByText('svc-auth-local').waitFor()
  t.match(await page.getByRole('status').textContent(), /"email": "emmy@example\.com"/)
  t.strictSame(await barriersOn(page), [])
})

scene('an administrator grants a role, and the user sees it on the next page', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  const { page: emmysPage } = await arrive()
  await signIn(emmysPage, EMMY)
  await arrival(emmysPage, '/')
  t.equal(await new ExampleProcess(t, ['../lib/command/main.ts', 'grant', ADA.email, '--claim', 'role=admin'], settings).end(), 0)

  await page.getByRole('link', { name: 'Administration' }).click()
  t.equal(await arrival(page, '/auth/pages/factors'), '/auth/pages/factors?error=second_factor_missing&next=%2Fadmin', 'an administrator needs a second factor')
  await page.getByRole('button', { name: 'Set up an authenticator app' }).click()
  adasSecret = await page.locator('a[href^="otpauth:"]').getAttribute('href') ?? ''
  await page.getByLabel('Code from the app').fill(codeOf(adasSecret))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByLabel('I have saved these codes').check()
  await page.getByRole('link', { name: 'Continue' }).click()
  await arrival(page, '/admin')
  t.strictSame(await barriersOn(page), [])
  const row = page.getByRole('listitem').filter({ hasText: EMMY.email })
  await row.getByLabel(`Role of ${EMMY.email}`).selectOption('editor')
  await row.getByRole('button', { name: 'Grant' }).click()
  await row.getByRole('button', { name: 'Withdraw' }).waitFor()
  t.equal(await page.getByRole('status').textContent(), 'The role is granted.')
  t.strictSame(await barriersOn(page), [])
  await show(page, 'admin')
  await row.getByRole('link', { name: EMMY.email }).click()
  await page.getByRole('heading', { name: 'Devices' }).waitFor()
  t.equal(await page.getByRole('listitem').filter({ hasText: /grant\s.* by \w/s }).count(), 1, 'the history says who granted it')
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('link', { name: 'All users' }).click()
  await emmysPage.reload()
  t.equal(await emmysPage.getByRole('definition').filter({ hasText: 'editor' }).count(), 1)
  await show(emmysPage, 'home')

  await row.getByRole('button', { name: 'Withdraw' }).click()
  await row.getByRole('button', { name: 'Withdraw' }).waitFor({ state: 'detached' })
  await emmysPage.reload()
  t.equal(await emmysPage.getByRole('definition').filter({ hasText: 'editor' }).count(), 0)

  await row.getByLabel(`Reason to see what ${EMMY.email} sees`).fill('ticket 4711')
  await row.getByRole('button', { name: 'See what this user sees' }).click()
  await page.getByRole('heading', { name: `Hello ${EMMY.name}` }).waitFor()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: 'End', exact: true }).click()
  await arrival(page, '/admin')

  await page.getByRole('button', { name: 'Make a link' }).click()
  await page.getByRole('heading', { name: 'Your invitation' }).waitFor()
  t.strictSame(await barriersOn(page), [])
  await emmysPage.goto(await page.locator('pre').innerText())
  t.strictSame(await barriersOn(emmysPage), [])
})

scene('a user who asks for it stays signed in after the browser was closed', async (t, arrive) => {
  const { visitor, page } = await arrive()
  const lifetimes = async () => (await visitor.cookies()).map(({ expires }) => Math.round((expires * 1000 - Date.now()) / 86_400_000))

  await signIn(page, EMMY)
  await arrival(page, '/')
  t.ok((await lifetimes()).every(days => days < 0), 'a browser forgets such a cookie when it is closed')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await arrival(page, SIGN_IN)
  await page.getByLabel('Keep me signed in').check()
  await signIn(page, EMMY)
  await arrival(page, '/')
  t.ok((await lifetimes()).includes(30))
})

scene('a blocked user is signed out, and told so at the next sign-in, until the block is removed', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/auth/local/second-factor')
  await page.getByLabel('Code').fill(codeOf(adasSecret, { isNext: true }))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await arrival(page, '/')
  const { page: emmysPage } = await arrive()
  await signIn(emmysPage, EMMY)
  await arrival(emmysPage, '/')

  await page.getByRole('link', { name: 'Administration' }).click()
  await page.getByRole('searchbox').fill('nothing')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText('No user has an e-mail, a domain or a name that begins with “nothing”.').waitFor()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('searchbox').fill('Emmy')
  await page.getByRole('button', { name: 'Search' }).click()
  t.equal(await page.getByText(ADA.email).count(), 0)
  await page.getByRole('button', { name: `Block ${EMMY.email}`, exact: true }).click()
  await page.getByRole('button', { name: `Unblock ${EMMY.email}` }).waitFor()
  t.equal(await page.getByRole('status').textContent(), 'The user is blocked and signed out.')
  t.strictSame(await barriersOn(page), [])

  await emmysPage.reload()
  await arrival(emmysPage, SIGN_IN)
  await signIn(emmysPage, EMMY)
  t.equal(await emmysPage.getByRole('alert').textContent(), 'This account is blocked.')

  await page.getByRole('button', { name: `Unblock ${EMMY.email}` }).click()
  await page.getByRole('button', { name: `Block ${EMMY.email}`, exact: true }).waitFor()
  await signIn(emmysPage, EMMY)
  t.equal(await arrival(emmysPage, '/'), '/')
})

scene('after the sign-out the back button shows nothing private', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, EMMY)
  await arrival(page, '/')
  await page.getByRole('link', { name: 'Account', exact: true }).click()
  await arrival(page, ACCOUNT)
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await arrival(page, SIGN_IN)

  for (let steps = 0; steps < 2; steps++) {
    await page.goBack()
    t.notMatch(await page.content(), /emmy@example\.com|Noether/, page.url())
  }
})

scene('two tabs sign in at once', async (t, arrive) => {
  const { visitor, page } = await arrive()
  await page.getByRole('link', { name: 'Continue with Dev Provider' }).click()
  await page.getByRole('button', { name: 'Cancel' }).waitFor()
  const other = await visitor.open(url)
  await other.getByRole('link', { name: 'Continue with Dev Provider' }).click()

  for (const tab of [other, page]) {
    await consent(tab, GRACE)
    t.equal(await arrival(tab, '/'), '/')
    t.ok(await tab.getByText(GRACE.email).first().isVisible())
  }
})

scene('pages for what is missing or forbidden have no barriers', async (t, arrive) => {
  const { visitor, page } = await arrive('/nowhere')
  t.strictSame(await barriersOn(page), [])
  await page.goto(url)
  await signIn(page, EMMY)
  await page.getByRole('link', { name: 'Administration' }).click()
  await page.getByRole('heading', { name: 'Forbidden' }).waitFor()
  t.strictSame(await barriersOn(page), [])

  // The browser notes that the pages came with 404 and 403.
  t.equal(visitor.complaints.splice(0).filter(complaint => !/status of 40[34]/.test(complaint)).length, 0)
})

scene('a user without a password confirms with the provider, as no other user, and sets one', async (t, arrive) => {
  const { page } = await arrive()
  await page.getByRole('link', { name: 'Continue with Dev Provider' }).click()
  await consent(page, GRACE)
  await arrival(page, '/')
  await example.advanceClock()
  await page.goto(url + ACCOUNT)
  const setPassword = async () => {
    await page.getByLabel('New password').fill('a compiler of words')
    await page.getByRole('button', { name: 'Set a password' }).click()
  }

  await openRow(page, 'Password')
  await setPassword()
  await arrival(page, '/auth/pages/confirm')
  await page.getByRole('button', { name: 'Continue with Dev Provider' }).click()
  await consent(page, AMALIE)
  await page.getByRole('alert').waitFor()
  t.match(page.url(), /\/auth\/pages\/confirm\?.*error=invalid_state#$/)
  await page.getByRole('button', { name: 'Continue with Dev Provider' }).click()
  await consent(page, GRACE)
  await arrival(page, ACCOUNT)
  await setPassword()
  t.equal(await arrival(page, ACCOUNT), ACCOUNT)
  await openRow(page, 'Sign-in methods')
  t.ok(await page.getByRole('button', { name: 'Remove Password' }).isVisible())
})
