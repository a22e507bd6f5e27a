import type { Page } from 'playwright-core'
import t from 'tap'
import { settingsFor, startExample, withClock } from '../examples/example-process.js'
import { userIdOn } from '../examples/visitor.js'
import { startChromium } from './chromium.js'
import { ACCOUNT, type AdmittedUser, SIGN_IN, arrivalsAt, consent, openRow, register, scenesAt, signIn } from './demo-steps.js'
import { barriersOn } from './visitor.js'

const settings = await settingsFor(t)
const url = `http://localhost:${settings.PORT}`
const example = await startExample(t, withClock(settings))
const chromium = await startChromium()
const scene = scenesAt(url, chromium)
const arrival = arrivalsAt(url)

/** A user who needs no scripts has none. */
const WITHOUT_SCRIPTS = { scripts: false }

/** A user of one scene, with an address that no other scene has. */
function person (name: string): AdmittedUser {
  const [first = ''] = name.toLowerCase().split(' ')
  return { name, email: `${first}@example.com`, password: `the first one of ${first}` }
}

/** What the demo adds to each subject. */
const OF_DEMO = ' - Demo'

/** Opens the mailbox and waits until the newest mail to an address has this subject. */
async function findMail (page: Page, { to, subject }: { to: string, subject: string }): Promise<string | null> {
  const mail = page.getByRole('article').filter({ hasText: to }).first()
  for (let looks = 0; looks < 100; looks++) {
    await page.goto(new URL('/mailbox', page.url()).href)
    if (await mail.count() === 0 || await mail.getByRole('heading').textContent() !== `${subject}${OF_DEMO}`) continue
    // The link of the mail, not that to the account in notices.
    const link = mail.getByRole('link').filter({ hasText: 'token=' })
    return await link.count() === 0 ? null : link.textContent()
  }
  throw new Error(`there is no mail "${subject}" to ${to}, but ${await page.getByRole('main').innerText()}`)
}

/** Opens the link of the newest mail to an address. */
async function followMail (page: Page, mail: { to: string, subject: string }): Promise<void> {
  await findMail(page, mail)
  await page.getByRole('article').filter({ hasText: mail.to }).first().getByRole('link').filter({ hasText: 'token=' }).click()
  await page.waitForURL(/token=/)
}

/** The mails to an address, the newest first. */
async function subjectsTo (page: Page, to: string): Promise<string[]> {
  await page.goto(new URL('/mailbox', page.url()).href)
  const subjects = await page.getByRole('article').filter({ hasText: to }).getByRole('heading').allTextContents()
  return subjects.map(subject => subject.replace(OF_DEMO, ''))
}

/** From the sign-in page. */
async function askForNewPassword (page: Page, email: string): Promise<void> {
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await page.getByLabel('E-mail').fill(email)
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByRole('heading', { name: 'Check your inbox' }).waitFor()
}

/** The sign-in methods on the account page. */
async function methodsOn (page: Page): Promise<string[]> {
  await openRow(page, 'Sign-in methods')
  return page.locator('section', { hasText: 'Sign-in methods' }).getByRole('listitem').allInnerTexts()
}

async function chooseNewPassword (page: Page, password: string): Promise<void> {
  await page.getByLabel('New password').fill(password)
  await page.getByRole('button', { name: 'Set password' }).click()
}

/** What programs do that examine a mail before its reader sees it. */
async function scan (link: string): Promise<void> {
  for (let times = 0; times < 5; times++) {
    for (const method of ['HEAD', 'GET']) await (await fetch(link, { method, redirect: 'manual' })).text()
  }
  const context = await chromium.newContext()
  for (let times = 0; times < 5; times++) {
    const page = await context.newPage()
    await page.goto(link, { waitUntil: 'networkidle' })
  }
  await context.close()
}

/** On the account page. */
async function changeEmail (page: Page, email: string, password: string): Promise<void> {
  await openRow(page, 'E-mail')
  const section = page.locator('section', { hasText: 'New e-mail address' })
  await section.getByLabel('New e-mail address').fill(email)
  await section.getByLabel('Current password').fill(password)
  await section.getByRole('button', { name: 'Change e-mail' }).click()
}

const RESET = 'Choose a new password'
const VERIFY = 'Confirm your e-mail address'
const CHANGE = 'Confirm your new e-mail address'
const WRONG = 'The e-mail or the password is wrong.'

scene('a user who forgot the password chooses another in another browser, and the first one is signed out', async (t, arrive) => {
  const ada = person('Ada Lovelace')
  const { page: first } = await arrive()
  await register(first, ada)
  await arrival(first, '/')
  t.strictSame(await barriersOn(first), [])

  const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await askForNewPassword(page, ada.email)
  await followMail(page, { to: ada.email, subject: RESET })
  const { page: reader } = await arrive('/mailbox')
  t.strictSame(await barriersOn(reader), [])
  await reader.getByRole('article').filter({ hasText: ada.email }).first().getByRole('link', { name: 'As mail programs show it' }).click()
  t.strictSame(await barriersOn(reader, { isMail: true }), [])
  await reader.getByRole('link', { name: 'Choose a password' }).click()
  await reader.waitForURL(page.url())
  t.strictSame(await barriersOn(reader), [])
  await chooseNewPassword(page, 'a note on the engine')
  t.equal(await arrival(page, SIGN_IN), SIGN_IN, 'the user is not signed in by the link')

  await first.reload()
  await arrival(first, SIGN_IN)
  await signIn(first, ada)
  t.equal(await first.getByRole('alert').textContent(), WRONG)
  await signIn(page, { ...ada, password: 'a note on the engine' })
  t.equal(await arrival(page, '/'), '/')
  await findMail(page, { to: ada.email, subject: 'Your password was changed' })
})

scene('an unknown address is answered alike, and gets no mail', async (t, arrive) => {
  const emmy = person('Emmy Noether')
  const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await register(page, emmy)
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await example.advanceClock()
  const answers = []
  for (const email of ['unknown@example.com', emmy.email]) {
    await page.goto(url + SIGN_IN)
    await askForNewPassword(page, email)
    const there = await arrival(page, '/auth/pages/link-sent')
    const text = await page.getByRole('main').innerText()
    t.match(text, email)
    answers.push([there, text.replace(email, 'ADDRESS').replace(/\d+ seconds|1 minute/, 'TIME')])
  }

  t.strictSame(answers[0], answers[1])
  await findMail(page, { to: emmy.email, subject: RESET })
  t.strictSame(await subjectsTo(page, 'unknown@example.com'), [], 'mails are sent in order, and that to Emmy has arrived')
})

scene('the owner of an address frees it from an account that another person made, and signs in with the provider', async (t, arrive) => {
  const ada = { name: 'Sophie Germain', email: 'sophie@example.com' }
  const squatter = { ...ada, password: 'not the owner at all' }
  const provider = 'Dev Provider'
  const { page: theirs } = await arrive()
  await register(theirs, squatter)
  await arrival(theirs, '/')
  const squatted = userIdOn(await theirs.content())
  await theirs.goto(url + ACCOUNT)
  await openRow(theirs, 'Sign-in methods')
  await theirs.getByRole('button', { name: `Add ${provider}` }).click()
  await consent(theirs, { name: 'Mallory', email: 'mallory@example.com' })
  t.equal(await arrival(theirs, ACCOUNT), `${ACCOUNT}?open=methods`)
  await example.advanceClock()

  const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await page.getByRole('link', { name: `Continue with ${provider}` }).click()
  await consent(page, ada)
  t.equal(await arrival(page, SIGN_IN), `${SIGN_IN}?error=account_exists`)
  await askForNewPassword(page, ada.email)
  await followMail(page, { to: ada.email, subject: RESET })
  await chooseNewPassword(page, 'elastic surfaces')
  await arrival(page, SIGN_IN)
  await page.getByRole('link', { name: `Continue with ${provider}` }).click()
  await consent(page, ada)
  t.equal(await arrival(page, '/'), '/')
  t.equal(userIdOn(await page.content()), squatted)
  await page.goto(url + ACCOUNT)
  const methods = await methodsOn(page)
  t.equal(methods.length, 2)
  for (const method of methods) t.match(method, ada.email)

  await theirs.goto(url)
  await arrival(theirs, SIGN_IN)
  await signIn(theirs, squatter)
  t.equal(await theirs.getByRole('alert').textContent(), WRONG)
  await theirs.getByRole('link', { name: `Continue with ${provider}` }).click()
  await consent(theirs, { name: 'Mallory', email: 'mallory@example.com' })
  await arrival(theirs, '/')
  t.not(userIdOn(await theirs.content()), squatted, 'the identity that was linked signs in another user')
})

scene('the reader of a mail who did not register frees the address, and registers with it', async (t, arrive) => {
  const joan = person('Joan Clarke')
  const { page: theirs } = await arrive()
  await register(theirs, { ...joan, password: 'not the owner at all' })
  await arrival(theirs, '/')

  const { page } = await arrive('/mailbox')
  await followMail(page, { to: joan.email, subject: VERIFY })
  t.strictSame(await barriersOn(page), [])
  await theirs.goto(url + ACCOUNT)
  t.ok(await theirs.getByText('not confirmed').isVisible(), 'opening the link does nothing')
  const free = async (email: string) => {
    await page.getByLabel('If you didn’t create this account, enter your e-mail address').fill(email)
    await page.getByRole('button', { name: 'Remove the address' }).click()
  }
  await free('jean@example.com')
  await page.getByRole('alert').waitFor()
  t.notMatch(page.url(), 'token', 'the page is shown again without the token in its address')
  t.strictSame(await barriersOn(page), [])
  await free(joan.email)
  await arrival(page, SIGN_IN)

  await theirs.reload()
  await arrival(theirs, SIGN_IN)
  await register(page, joan)
  t.equal(await arrival(page, '/'), '/')
})

scene('a user confirms the address by the link that is sent again', async (t, arrive) => {
  const mary = person('Mary Cartwright')
  const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await register(page, mary)
  await arrival(page, '/')
  await findMail(page, { to: mary.email, subject: VERIFY })
  await example.advanceClock()
  await page.goto(url + ACCOUNT)

  await page.getByRole('button', { name: 'Send the link again' }).click()
  t.equal(await arrival(page, ACCOUNT), ACCOUNT)
  t.equal(await page.getByRole('status').textContent(), 'We sent you an e-mail. Follow the link in it.')
  t.strictSame(await subjectsTo(page, mary.email), [VERIFY, VERIFY])
  await followMail(page, { to: mary.email, subject: VERIFY })
  await page.getByRole('button', { name: 'Confirm the address' }).click()
  t.equal(await arrival(page, ACCOUNT), ACCOUNT)
  t.equal(await page.getByRole('status').textContent(), 'The e-mail address is confirmed.')
  t.ok(await page.getByText('confirmed', { exact: true }).isVisible())
})

scene('programs that examine mails open each link ten times and render it five times, and its reader still succeeds', async (t, arrive) => {
  const rosa = person('Rosa Peter')
  const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await register(page, rosa)
  await arrival(page, '/')
  const scanned = async (mail: { to: string, subject: string }) => {
    await scan(await findMail(page, mail) ?? '')
    await followMail(page, mail)
  }

  await scanned({ to: rosa.email, subject: VERIFY })
  await page.getByRole('button', { name: 'Confirm the address' }).click()
  await arrival(page, ACCOUNT)
  t.ok(await page.getByText('confirmed', { exact: true }).isVisible())

  await changeEmail(page, 'roza@example.com', rosa.password)
  await scanned({ to: 'roza@example.com', subject: CHANGE })
  await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  await arrival(page, ACCOUNT)
  t.equal(await page.getByText('roza@example.com').count() > 0, true)

  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await example.advanceClock()
  await askForNewPassword(page, 'roza@example.com')
  await scanned({ to: 'roza@example.com', subject: RESET })
  await chooseNewPassword(page, 'recursive functions')
  await arrival(page, SIGN_IN)
  await signIn(page, { email: 'roza@example.com', password: 'recursive functions' })
  t.equal(await arrival(page, '/'), '/')
})

scene('a user changes the e-mail: the old address is told, the new one confirms, and a misspelt one changes nothing', async (t, arrive) => {
  const hedy = person('Hedy Lamarr')
  const { page } = await arrive()
  await register(page, hedy)
  await arrival(page, '/')
  await followMail(page, { to: hedy.email, subject: VERIFY })
  await page.getByRole('button', { name: 'Confirm the address' }).click()
  await arrival(page, ACCOUNT)
  const { page: other } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await signIn(other, hedy)
  await arrival(other, '/')
  const request = async (email: string) => {
    await page.goto(url + ACCOUNT)
    await changeEmail(page, email, hedy.password)
    await page.getByRole('status').waitFor()
  }

  await request('hedwig@exmaple.com')
  t.equal(await arrival(page, ACCOUNT), ACCOUNT)
  t.ok(await page.getByText(hedy.email).first().isVisible(), 'the account still has the old one')
  await request('hedwig@example.com')
  await findMail(page, { to: hedy.email, subject: 'A new e-mail address was requested' })
  await followMail(page, { to: 'hedwig@example.com', subject: CHANGE })
  t.strictSame(await barriersOn(page), [])
  await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  t.equal(await arrival(page, ACCOUNT), ACCOUNT, 'the session goes on')
  t.ok(await page.getByText('hedwig@example.com').first().isVisible())
  await findMail(page, { to: hedy.email, subject: 'Your e-mail address was changed' })

  await other.reload()
  await arrival(other, SIGN_IN)
  for (const email of [hedy.email, 'hedwig@exmaple.com']) {
    await signIn(other, { ...hedy, email })
    t.equal(await other.getByRole('alert').textContent(), WRONG)
  }
  await signIn(other, { ...hedy, email: 'hedwig@example.com' })
  t.equal(await arrival(other, '/'), '/')
})

scene('a user of the provider gets a password, and has both ways to sign in', async (t, arrive) => {
  const grace = person('Grace Hopper')
  const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
  await page.getByRole('link', { name: 'Continue with Dev Provider' }).click()
  await consent(page, grace)
  await arrival(page, '/')
  const userId = userIdOn(await page.content())

  await page.goto(url + ACCOUNT)
  await openRow(page, 'Password')
  await page.getByLabel('New password').fill(grace.password)
  await page.getByRole('button', { name: 'Set a password' }).click()
  t.equal(await arrival(page, ACCOUNT), ACCOUNT)
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await signIn(page, grace)
  t.equal(await arrival(page, '/'), '/')
  t.equal(userIdOn(await page.content()), userId)
  await page.goto(url + ACCOUNT)
  t.equal((await methodsOn(page)).length, 2)
  await findMail(page, { to: grace.email, subject: 'Your password was changed' })
})

scene('a user deletes the account with the password, and may register again', async (t, arrive) => {
  const maria = person('Maria Agnesi')
  const { page } = await arrive()
  await register(page, maria)
  await arrival(page, '/')
  const remove = async (password: string) => {
    await openRow(page, 'Delete account')
    const section = page.locator('section', { hasText: 'deleted permanently' })
    await section.getByLabel('Current password').fill(password)
    await section.getByRole('button', { name: 'Delete account' }).click()
  }

  await page.goto(url + ACCOUNT)
  await remove('not that one')
  t.equal(await page.getByRole('alert').textContent(), 'The password is wrong.')
  await remove(maria.password)
  await arrival(page, SIGN_IN)
  await signIn(page, maria)
  await page.getByRole('alert').waitFor()
  await register(page, maria)
  t.equal(await arrival(page, '/'), '/')
})

t.test('where the address is confirmed first', async t => {
  const settings = await settingsFor(t)
  const url = `http://localhost:${settings.PORT}`
  const example = await startExample(t, withClock({ ...settings, DEMO_VERIFY: 'first' }))
  const scene = scenesAt(url, chromium, t)
  const arrival = arrivalsAt(url)
  const emilie = { ...person('Émilie du Châtelet'), email: 'emilie@example.com' }

  const askToRegister = async (page: Page) => {
    await page.getByRole('link', { name: 'Create an account' }).click()
    await page.getByLabel('E-mail').fill(emilie.email)
    await page.getByRole('button', { name: 'Send the link' }).click()
    await arrival(page, '/auth/pages/link-sent')
  }

  await scene('a visitor chooses name and password by a link that programs have opened, and is signed in', async (t, arrive) => {
    const { page: seeing } = await arrive()
    const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
    await askToRegister(page)
    const mail = { to: emilie.email, subject: 'Finish your registration' }
    const link = await findMail(page, mail) ?? ''
    await scan(link)
    await seeing.goto(link)
    t.strictSame(await barriersOn(seeing), [])

    await followMail(page, mail)
    await page.getByLabel('Name').fill(emilie.name)
    await page.getByLabel('Password').fill(emilie.password)
    await page.getByRole('button', { name: 'Create an account' }).click()
    t.equal(await arrival(page, '/'), '/')
    t.ok(await page.getByText(emilie.name).first().isVisible())
    await page.goto(url + ACCOUNT)
    t.ok(await page.getByText('confirmed', { exact: true }).isVisible())
  })

  await scene('a registration with the address of an account is answered alike, and its owner is told', async (t, arrive) => {
    await example.advanceClock()
    const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
    await askToRegister(page)
    t.equal(await findMail(page, { to: emilie.email, subject: 'You already have an account' }), null)
  })
})

t.test('where the address must be confirmed', async t => {
  const settings = await settingsFor(t)
  const url = `http://localhost:${settings.PORT}`
  await startExample(t, { ...settings, DEMO_VERIFY: 'required' })
  const arrival = arrivalsAt(url)

  await scenesAt(url, chromium, t)('a user signs in by password once the address is confirmed', async (t, arrive) => {
    const laura = person('Laura Bassi')
    const { page } = await arrive(SIGN_IN, WITHOUT_SCRIPTS)
    await register(page, laura)
    await arrival(page, '/auth/pages/link-sent')
    await page.goto(url)
    await signIn(page, laura)
    t.equal(await page.getByRole('alert').textContent(), 'Confirm your e-mail address first. We sent you a link.')

    await followMail(page, { to: laura.email, subject: VERIFY })
    await page.getByLabel('Password').fill(laura.password)
    await page.getByRole('button', { name: 'Confirm the address' }).click()
    await arrival(page, SIGN_IN)
    await signIn(page, laura)
    t.equal(await arrival(page, '/'), '/')
  })
})
