import type { Page } from 'playwright-core'
import t from 'tap'
import { ExampleProcess, settingsFor, startExample, withClock } from '../examples/example-process.js'
import { startChromium } from './chromium.js'
import { arrivalsAt, consent, register, scenesAt, signIn } from './demo-steps.js'
import { barriersOn, inEachLook } from './visitor.js'

const SCREENSHOTS = process.env.SCREENSHOTS

t.setTimeout(300_000)

// Providers for the sign-in page to show; no test goes there.
const settings = { ...await settingsFor(t), GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: 'secret', GITHUB_CLIENT_ID: 'id', GITHUB_CLIENT_SECRET: 'secret' }
const url = `http://localhost:${settings.PORT}`
const example = await startExample(t, withClock(settings))
const scene = scenesAt(url, await startChromium(t))
const arrival = arrivalsAt(url)

const ADA = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'an engine of analysis' }
const EMMY = { name: 'Emmy Noether', email: 'emmy@example.com', password: 'rings and invariants' }
/** Emmy at the development provider. */
const AMALIE = { name: 'Emmy Noether', email: 'amalie@example.com' }
const GRACE = { name: 'Grace Hopper', email: 'grace@example.com' }
const SONJA = { name: 'Sofja Kowalewskaja', email: 'sonja@example.com', password: 'a top that turns' }

/** Takes the pictures of a page: on a desk and on a phone, light and dark. */
async function show (page: Page, name: string): Promise<void> {
  if (SCREENSHOTS === undefined) return
  await page.mouse.move(0, 0)
  await inEachLook(page, async ({ device, colorScheme }) => {
    await page.screenshot({ path: `${SCREENSHOTS}/${name}-${device}-${colorScheme}.png`, fullPage: true })
  })
}

scene('a user registers, signs out, mistypes the password, and signs in', async (t, arrive) => {
  const { page } = await arrive()
  t.strictSame(
    await page.getByRole('navigation', { name: 'Providers' }).getByRole('link').allInnerTexts(),
    ['Continue with Google', 'Continue with GitHub', 'Continue with Development provider']
  )
  t.strictSame(await barriersOn(page), [])
  await show(page, 'login')
  await page.getByText('New here?').click()
  t.strictSame(await barriersOn(page), [], 'also with the form for registration')
  await page.getByText('New here?').click()
  await page.getByText('Forgot your password?').click()
  t.strictSame(await barriersOn(page), [], 'and with that for a forgotten password')

  await register(page, ADA)
  t.equal(await arrival(page, '/'), '/')
  t.ok(await page.getByRole('heading', { name: 'Your account' }).isVisible())
  t.ok(await page.getByText('Ada Lovelace').first().isVisible())
  t.strictSame(await barriersOn(page), [])

  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  t.equal(await arrival(page, '/login'), '/login?done=signed_out')
  t.equal(await page.getByRole('status').textContent(), 'You are signed out.')
  t.strictSame(await barriersOn(page), [])
  await signIn(page, { ...ADA, password: 'an engine of analogy' })
  await page.getByRole('alert').waitFor()
  t.equal(await page.getByRole('alert').textContent(), 'The e-mail or the password is wrong.')
  t.strictSame(await barriersOn(page), [])

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
  t.equal(await arrival(page, '/login'), '/login?done=signed_out')
})

scene('a user signs in with the development provider, or cancels there', async (t, arrive) => {
  const { page } = await arrive()
  await page.getByRole('link', { name: 'Continue with Development provider' }).click()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: 'Cancel' }).click()
  t.equal(await arrival(page, '/login'), '/login?error=access_denied')
  t.equal(await page.getByRole('alert').textContent(), 'You cancelled the sign-in.')

  await page.getByRole('link', { name: 'Continue with Development provider' }).click()
  await consent(page, GRACE)
  t.equal(await arrival(page, '/'), '/')
  t.ok(await page.getByText('You signed in with Development provider').isVisible())
})

scene('a user adds a way to sign in, uses it and removes it; that of another user is refused', async (t, arrive) => {
  const { page } = await arrive()
  await register(page, EMMY)
  await arrival(page, '/')
  t.equal(await page.getByRole('button', { name: 'Remove' }).count(), 0, 'the only sign-in method stays')

  await page.getByRole('link', { name: 'Add Development provider' }).click()
  await consent(page, GRACE)
  t.equal(await arrival(page, '/'), '/?error=already_linked')
  t.equal(await page.getByRole('alert').textContent(), 'This sign-in belongs to another account.')

  await page.goto(url)
  await example.advanceClock()
  await page.getByRole('link', { name: 'Add Development provider' }).click()
  t.equal(await arrival(page, '/confirm'), '/confirm?next=%2F')
  await page.getByLabel('Password', { exact: true }).fill(EMMY.password)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await arrival(page, '/')
  await page.getByRole('link', { name: 'Add Development provider' }).click()
  await consent(page, AMALIE)
  t.equal(await arrival(page, '/'), '/?done=linked')
  t.equal(await page.getByRole('status').first().textContent(), 'Added. You can sign in with it from now on.')
  await page.getByText('amalie@example.com').waitFor()
  await show(page, 'account')
  await page.getByRole('button', { name: 'Fetch and verify a token' }).click()
  await page.getByText('svc-auth-local').waitFor()
  t.match(await page.getByRole('status').last().textContent(), /"email": "emmy@example\.com"/)
  t.strictSame(await barriersOn(page), [])

  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByRole('link', { name: 'Continue with Development provider' }).click()
  await consent(page, AMALIE)
  await arrival(page, '/')
  t.ok(await page.getByText(EMMY.email).first().isVisible(), 'as the same user')

  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await signIn(page, EMMY)
  await arrival(page, '/')
  await example.advanceClock()
  await page.reload()
  await page.getByRole('link', { name: 'Confirm and remove Development provider' }).click()
  await arrival(page, '/confirm')
  await page.getByLabel('Password', { exact: true }).fill(EMMY.password)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await arrival(page, '/')
  await page.getByRole('button', { name: 'Remove Development provider' }).click()
  await page.getByRole('link', { name: 'Add Development provider' }).waitFor()
  t.equal(await page.getByText('amalie@example.com').count(), 0)
  t.equal(await page.getByRole('status').first().textContent(), 'Removed. It no longer signs you in.')
})

scene('an administrator grants a role, and the user sees it on the next page', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  const { page: emmysPage } = await arrive()
  await signIn(emmysPage, EMMY)
  await arrival(emmysPage, '/')
  t.equal(await new ExampleProcess(t, ['grant.ts', ADA.email, 'role=admin'], settings).end(), 0)

  await page.getByRole('link', { name: 'Administration' }).click()
  t.strictSame(await barriersOn(page), [])
  const row = page.getByRole('listitem').filter({ hasText: EMMY.email })
  await row.getByLabel(`Role of ${EMMY.email}`).selectOption('editor')
  await row.getByRole('button', { name: 'Grant' }).click()
  await row.getByRole('button', { name: 'Withdraw' }).waitFor()
  t.equal(await page.getByRole('status').textContent(), 'The role is granted.')
  t.strictSame(await barriersOn(page), [])
  await show(page, 'admin')
  await emmysPage.reload()
  t.equal(await emmysPage.getByRole('definition').filter({ hasText: 'editor' }).count(), 1)

  await row.getByRole('button', { name: 'Withdraw' }).click()
  await row.getByRole('button', { name: 'Withdraw' }).waitFor({ state: 'detached' })
  await emmysPage.reload()
  t.equal(await emmysPage.getByRole('definition').filter({ hasText: 'editor' }).count(), 0)

  await page.getByRole('button', { name: 'Make a link' }).click()
  await page.getByRole('heading', { name: 'Your invitation' }).waitFor()
  t.strictSame(await barriersOn(page), [])
})

scene('a user sees where they are signed in, and ends the session of one device', async (t, arrive) => {
  const { page } = await arrive()
  await register(page, SONJA)
  await arrival(page, '/')
  const { page: third } = await arrive()
  const { page: other } = await arrive()
  for (const browser of [third, other]) {
    await signIn(browser, SONJA)
    await arrival(browser, '/')
  }
  const devices = page.getByRole('region', { name: 'Where you are signed in' })
  const signOut = { name: 'Sign out Chrome on Linux' }

  await page.reload()
  t.equal(await devices.getByRole('listitem').count(), 3)
  t.equal(await devices.getByText('This device').count(), 1)
  t.strictSame(await barriersOn(page), [])
  await devices.getByRole('button', signOut).first().click()
  t.equal(await arrival(page, '/'), '/?done=session_ended')
  t.equal(await page.getByRole('status').first().textContent(), 'That device is signed out.')
  t.equal(await devices.getByRole('listitem').count(), 2)
  await other.reload()
  t.equal(await arrival(other, '/login'), '/login', 'the one that was used last stood first')

  await example.advanceClock()
  await page.reload()
  await devices.getByRole('link', { name: 'Confirm and sign out Chrome on Linux' }).click()
  t.equal(await arrival(page, '/confirm'), '/confirm?next=/')
  await page.getByLabel('Password', { exact: true }).fill(SONJA.password)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await arrival(page, '/')
  await devices.getByRole('button', signOut).click()
  await arrival(page, '/')
  t.equal(await devices.getByRole('listitem').count(), 1)
})

scene('a user who asks for it stays signed in after the browser was closed', async (t, arrive) => {
  const { visitor, page } = await arrive()
  const lifetimes = async () => (await visitor.cookies()).map(({ expires }) => Math.round((expires * 1000 - Date.now()) / 86_400_000))

  await signIn(page, ADA)
  await arrival(page, '/')
  t.ok((await lifetimes()).every(days => days < 0), 'a browser forgets such a cookie when it is closed')

  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await arrival(page, '/login')
  await page.getByLabel('Keep me signed in for 30 days').check()
  await signIn(page, ADA)
  await arrival(page, '/')
  t.ok((await lifetimes()).includes(30))
})

scene('a user signs out everywhere else, and only the other browser is signed out', async (t, arrive) => {
  const { page } = await arrive()
  const { page: other } = await arrive()
  for (const browser of [page, other]) {
    await signIn(browser, EMMY)
    await arrival(browser, '/')
  }

  await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
  t.equal(await arrival(page, '/'), '/?done=signed_out_everywhere')
  t.equal(await page.getByRole('status').first().textContent(), 'You are signed out everywhere else.')
  await other.reload()
  t.equal(await arrival(other, '/login'), '/login')
  await page.reload()
  t.ok(await page.getByText(EMMY.email).first().isVisible(), 'this one stays signed in')
})

scene('a user changes the name that the pages show', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, EMMY)
  await arrival(page, '/')

  const form = page.getByRole('form', { name: 'Your name' })
  await form.getByRole('textbox').fill('Amalie Emmy Noether')
  await form.getByRole('button', { name: 'Save' }).click()

  t.equal(await arrival(page, '/'), '/?done=renamed')
  t.equal(await page.getByRole('status').first().textContent(), 'Your name is saved.')
  t.ok(await page.getByText('Amalie Emmy Noether').first().isVisible())
})

scene('a blocked user is signed out, and told so at the next sign-in, until the block is removed', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  const { page: emmysPage } = await arrive()
  await signIn(emmysPage, EMMY)
  await arrival(emmysPage, '/')

  await page.getByRole('link', { name: 'Administration' }).click()
  await page.getByRole('searchbox').fill('nothing')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText('No user has an e-mail that begins with “nothing”.').waitFor()
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('searchbox').fill('Emmy')
  await page.getByRole('button', { name: 'Search' }).click()
  t.equal(await page.getByText(ADA.email).count(), 0)
  await page.getByRole('button', { name: `Block ${EMMY.email}`, exact: true }).click()
  await page.getByRole('button', { name: `Unblock ${EMMY.email}` }).waitFor()
  t.equal(await page.getByRole('status').textContent(), 'The user is blocked and signed out.')
  t.strictSame(await barriersOn(page), [])

  await emmysPage.reload()
  await arrival(emmysPage, '/login')
  await signIn(emmysPage, EMMY)
  await emmysPage.getByRole('alert').waitFor()
  t.equal(await emmysPage.getByRole('alert').textContent(), 'This account is blocked. Ask an administrator of this application.')
  t.strictSame(await barriersOn(emmysPage), [])

  await page.getByRole('button', { name: `Unblock ${EMMY.email}` }).click()
  await page.getByRole('button', { name: `Block ${EMMY.email}`, exact: true }).waitFor()
  await signIn(emmysPage, EMMY)
  t.equal(await arrival(emmysPage, '/'), '/')
})

scene('after the sign-out the back button shows nothing private', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  await page.getByRole('link', { name: 'Administration' }).click()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await arrival(page, '/login')

  for (let steps = 0; steps < 2; steps++) {
    await page.goBack()
    t.notMatch(await page.content(), /ada@example\.com|Lovelace/, page.url())
  }
})

scene('two tabs sign in at once', async (t, arrive) => {
  const { visitor, page } = await arrive()
  await page.getByRole('link', { name: 'Continue with Development provider' }).click()
  await page.getByRole('button', { name: 'Cancel' }).waitFor()
  const other = await visitor.open(`${url}/login`)
  await other.getByRole('link', { name: 'Continue with Development provider' }).click()

  for (const tab of [other, page]) {
    await consent(tab, GRACE)
    t.equal(await arrival(tab, '/'), '/')
    t.ok(await tab.getByText(GRACE.email).first().isVisible())
  }
})

scene('pages for what is missing or forbidden have no barriers', async (t, arrive) => {
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

scene('a user changes the password with the present one, and other browsers are signed out', async (t, arrive) => {
  const { page } = await arrive()
  const { page: other } = await arrive()
  for (const browser of [page, other]) {
    await signIn(browser, EMMY)
    await arrival(browser, '/')
  }
  const change = async (current: string) => {
    await page.getByLabel('Present password').fill(current)
    await page.getByLabel('New password').fill('ideals and modules')
    await page.getByRole('button', { name: 'Change the password' }).click()
  }

  await page.getByRole('link', { name: 'Change password' }).click()
  t.equal(await arrival(page, '/password'), '/password')
  t.strictSame(await barriersOn(page), [])
  await change('rings and variants')
  await page.getByRole('alert').waitFor()
  t.equal(await page.getByRole('alert').textContent(), 'The password is wrong.')
  await change(EMMY.password)
  t.equal(await arrival(page, '/'), '/?done=password_set')
  t.equal(await page.getByRole('status').first().textContent(), 'Your password is set. All other sessions have ended.')

  await other.reload()
  await arrival(other, '/login')
  await signIn(other, { ...EMMY, password: 'ideals and modules' })
  t.equal(await arrival(other, '/'), '/')
})

scene('a user who signed in a while ago confirms the password before the form for a new e-mail is shown', async (t, arrive) => {
  const { page } = await arrive()
  await signIn(page, ADA)
  await arrival(page, '/')
  await page.getByRole('link', { name: 'Change e-mail' }).click()
  t.equal(await arrival(page, '/email'), '/email', 'soon after the sign-in nothing is confirmed')

  await example.advanceClock()
  await page.goto(url)
  await page.getByRole('link', { name: 'Change e-mail' }).click()
  t.equal(await arrival(page, '/confirm'), '/confirm?next=%2Femail')
  t.strictSame(await barriersOn(page), [])
  await show(page, 'confirm')
  await page.getByLabel('Password', { exact: true }).fill('an engine of analogy')
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByRole('alert').waitFor()
  t.equal(await page.getByRole('alert').textContent(), 'The password is wrong.')
  await page.getByLabel('Password', { exact: true }).fill(ADA.password)
  await page.getByRole('button', { name: 'Confirm' }).click()
  t.equal(await arrival(page, '/email'), '/email')
})

scene('a user without a password confirms with the provider, as no other user, and sets one', async (t, arrive) => {
  const { page } = await arrive()
  await page.getByRole('link', { name: 'Continue with Development provider' }).click()
  await consent(page, GRACE)
  await arrival(page, '/')
  await example.advanceClock()

  await page.getByRole('link', { name: 'Set a password' }).click()
  await arrival(page, '/confirm')
  await page.getByRole('link', { name: 'Confirm with Development provider' }).click()
  await consent(page, AMALIE)
  await page.getByRole('alert').waitFor()
  t.equal(await page.getByRole('alert').textContent(), 'That was another account, or it took too long. Confirm with your own.')
  await page.getByRole('link', { name: 'Confirm with Development provider' }).click()
  await consent(page, GRACE)
  await arrival(page, '/password')
  await page.getByLabel('New password').fill('a compiler of words')
  await page.getByRole('button', { name: 'Set the password' }).click()
  t.equal(await arrival(page, '/'), '/?done=password_set')
  t.ok(await page.getByText('E-mail and password', { exact: true }).isVisible())
})
