/**
 * As a property of attack 129, attack 130 and attack 131: what someone without a factor does in any order leaves factors,
 * e-mail and links.
 */
import fc from 'fast-check'
import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import type { AuthStore } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { DATA_SECRET, enrolAt } from '../helpers/factor-app.js'
import { type MailApp, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { type AdmittedUser, OwnProvider, callbackOf, leaveFor, linkAt, postLogin } from '../helpers/own-provider.js'
import { holds, runCase } from '../helpers/properties.js'
import { addAt, newDevice } from '../helpers/passkey-app.js'
import { SOME_STORES } from '../helpers/stores.js'

const MINUTE_MS = 60_000
const OLD = 'ada@old.example'
const PRESENT = 'ada@present.example'
const MALLORY = 'mallory@example.com'
const PASSWORD = 'correct horse'
const ALL = ['password', 'provider', 'old mailbox', 'present mailbox', 'old session'] as const
type Power = typeof ALL[number]

/** A provider that proves when the user authenticated. */
class ProvingProvider extends OwnProvider {
  readonly provesAuthTime = true
}

/** What the attacker does next; a number chooses among the possibilities of a step. */
interface Step {
  does: keyof typeof STEPS
  choice: number
  /** Whether it is done in the copy of the old session, where there is one. */
  inOldSession: boolean
}

interface Attack {
  made: MailApp
  powers: readonly Power[]
  /** Where the attacker acts now. */
  browser: Browser
  choice: number
  /** Tokens of links that the attacker has read, by the path that takes them. */
  links: Array<{ path: string, token: string }>
  /** Codes that the attacker has read. */
  codes: string[]
  /** The password of the account, as far as the attacker knows it. */
  passwords: string[]
}

const one = <T>(choices: readonly T[], choice: number): T | undefined => choices[choice % Math.max(1, choices.length)]

const PATHS: Record<string, string> = {
  'reset-password': 'reset-password', 'verify-email': 'verify-email', 'change-email': 'change-email/confirm', register: 'register'
}

const STEPS = {
  async 'sign in by password' ({ browser, passwords, choice }: Attack) {
    await browser.post('/auth/local/login', { email: one([PRESENT, OLD], choice), password: one(passwords, choice) ?? 'a guess' })
  },
  async 'sign in at the provider' ({ browser, powers, choice }: Attack) {
    if (!powers.includes('provider')) return
    const person = one<AdmittedUser>([
      { subject: 'ada-a', email: PRESENT }, { subject: 'ada-a', email: MALLORY }, { subject: 'ada-a', email: PRESENT, emailVerified: false },
      { subject: 'ada-a', email: OLD }, { subject: 'ada-a' }
    ], choice)
    if (person !== undefined) await browser.get(await leaveFor(browser, '/auth/a/login', person))
  },
  async 'sign in at another provider' ({ browser, powers, choice }: Attack) {
    const emails = [MALLORY, ...powers.includes('present mailbox') ? [PRESENT] : [], ...powers.includes('old mailbox') ? [OLD] : []]
    const email = one(emails, choice) ?? MALLORY
    await browser.get(await leaveFor(browser, '/auth/b/login', { subject: `mallory at ${email}`, email }))
  },
  async 'link an identity' ({ browser }: Attack) {
    const { url } = (await postLogin(browser, '/auth/b/login?link=true')).json()
    if (url !== undefined) await browser.get(callbackOf(url, { subject: 'mallory', email: MALLORY }))
  },
  async 'unlink' ({ browser, choice }: Attack) {
    await browser.post('/auth/pages/unlink', { provider: one(['a', 'local', 'b'], choice) })
  },
  async 'ask for a link' ({ browser, choice }: Attack) {
    if (choice % 3 === 0) return browser.post('/auth/local/verify-email', {})
    await browser.post('/auth/local/forgot-password', { email: one([PRESENT, OLD], choice) })
  },
  async 'read the mails' ({ made, powers, links, codes }: Attack) {
    const read = [MALLORY, ...powers.includes('present mailbox') ? [PRESENT] : [], ...powers.includes('old mailbox') ? [OLD] : []]
    // Those of the answers so far are sent.
    await new Promise<void>(resolve => setImmediate(resolve))
    for (const { kind, token, code } of made.mails.all.filter(mail => read.includes(mail.to))) {
      const path = PATHS[kind]
      if (token !== null && path !== undefined) links.push({ path, token })
      if (code !== null) codes.push(code)
    }
  },
  async 'use a link' ({ browser, links, passwords, choice }: Attack) {
    const link = one(links.toReversed(), choice)
    if (link === undefined) return
    const { path, token } = link
    const password = path === 'reset-password' ? `new password ${choice}` : one(passwords, choice)
    const answer = await browser.post(`/auth/local/${path}`, {
      token, ...(password !== undefined && { password }), ...(path === 'verify-email' && choice % 2 === 1 && { not_me: true, email: PRESENT })
    })
    if (path === 'reset-password' && answer.statusCode === 204 && password !== undefined) passwords.splice(0, Infinity, password)
  },
  async 'change the account' ({ browser, passwords, choice }: Attack) {
    const current = one(passwords, choice)
    const [path = '', fields = {}] = one<[string, object]>([
      ['change-password', { password: 'a new password' }], ['change-email', { email: MALLORY }], ['set-password', { password: 'a new password' }],
      ['delete-account', {}]
    ], choice) ?? []
    await browser.post(`/auth/local/${path}`, { ...fields, ...(current !== undefined && choice % 2 === 0 && { current }) })
  },
  async 'authenticate again' ({ browser, powers, passwords, choice }: Attack) {
    const password = one(passwords, choice)
    if (password !== undefined && choice % 2 === 0) return browser.post('/auth/local/reauthenticate', { password })
    if (!powers.includes('provider')) return
    const { url } = (await postLogin(browser, '/auth/a/login?reauthenticate=true')).json()
    if (url !== undefined) await browser.get(callbackOf(url, { subject: 'ada-a', email: MALLORY }))
  },
  async 'set up an app' ({ browser, codes, choice }: Attack) {
    const begun: LightMyRequestResponse = await browser.post('/auth/local/totp/enroll', choice % 2 === 0 ? { lost: true } : {})
    if (begun.statusCode !== 200) return
    const mailCode = codes.at(-1)
    await browser.post('/auth/local/totp/confirm', { code: totp(begun.json().secret), ...(mailCode !== undefined && { mailCode }) })
  },
  async 'add a passkey' ({ browser, codes, choice }: Attack) {
    const begun = await browser.post('/auth/local/passkeys/options', { for: 'register', ...(choice % 2 === 0 && { lost: true }) })
    if (begun.statusCode !== 200) return
    const mailCode = codes.at(-1)
    await browser.post('/auth/local/passkeys/register', { response: newDevice().create(begun.json()), ...(mailCode !== undefined && { mailCode }) })
  },
  async 'remove a factor' ({ browser, codes, choice }: Attack) {
    if (choice % 3 === 0) return browser.post('/auth/local/totp/remove')
    if (choice % 3 === 1) return browser.post('/auth/local/recovery-codes')
    const mailCode = codes.at(-1)
    await browser.post('/auth/local/passkeys/remove', { id: ids.at(-1) ?? '', lost: true, ...(mailCode !== undefined && { mailCode }) })
  },
  async 'guess a code' ({ browser, choice }: Attack) {
    await browser.post('/auth/local/second-factor', choice % 2 === 0 ? { code: '000000' } : { code: 'AAAA-AAAA-AAAA-AAAA-AAAA-AAAA' })
  },
  async 'register the address' ({ browser, choice }: Attack) {
    await browser.post('/auth/local/register', { email: one([PRESENT, OLD], choice), password: 'a new password' })
  },
  async 'sign out everywhere' ({ browser }: Attack) {
    await browser.post('/auth/logout', { everywhere: true })
  }
} satisfies Record<string, (attack: Attack) => Promise<unknown>>

/** The passkeys of the accounts that were made. */
const ids: string[] = []

/** An account with an app, or with a passkey where a factor is required, and what one attacker has of it. */
async function victimOf (
  t: Test, made: MailApp, { hasApp, isOfProvider }: { hasApp: boolean, isOfProvider: boolean }
): Promise<{ userId: string, copy: Map<string, string> }> {
  const browser = new Browser(made.app)
  if (isOfProvider) await browser.get(await leaveFor(browser, '/auth/a/login', { subject: 'ada-a', email: PRESENT }))
  else await registerWithLink(browser, made)
  if (hasApp) await enrolAt(t, browser)
  else {
    const device = newDevice()
    ids.push(device.id.toString('base64url'))
    t.equal((await addAt(browser, device)).statusCode, 201)
  }
  const userId = await userIdIn(browser) ?? ''
  const copy = new Map(browser.cookies)
  advanceClock(t, 11 * MINUTE_MS)
  return { userId, copy }
}

/** Registers a user who has confirmed two addresses one after the other, and links an identity. */
async function registerWithLink (browser: Browser, made: MailApp): Promise<void> {
  const token = await registerAt({ ...made, browser }, { email: OLD, password: PASSWORD })
  await confirmAddress(browser, token)
  await browser.post('/auth/local/change-email', { email: PRESENT, current: PASSWORD })
  await browser.post('/auth/local/change-email/confirm', { token: (await made.mails.next('change-email')).token })
  await linkAt(browser, 'a', { subject: 'ada-a', email: PRESENT })
}

async function stateOf ({ app }: MailApp, userId: string): Promise<object> {
  const { auth } = app
  const user = await auth.findUser({ userId })
  return {
    email: user?.email,
    kinds: user?.factors,
    factors: (await auth.factors(userId)).map(({ id, codesLeft }) => ({ id, codesLeft })),
    // A first password may be set by the link in a mail.
    links: user && (await auth.links(userId)).filter(({ provider }) => provider !== 'local').map(({ provider, subject }) => ({ provider, subject }))
  }
}

const step = fc.record({
  does: fc.constantFrom(...Object.keys(STEPS) as Array<keyof typeof STEPS>), choice: fc.nat(11), inOldSession: fc.boolean()
})

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  for (const hasApp of [true, false]) {
    const owner = hasApp ? 'a user with an app' : 'a user with a required passkey'
    t.test(`attack 129, attack 130, attack 131: an attacker without a factor of ${owner} gets no session and changes nothing, on ${kind}`, async t => {
      const run = async (isOfProvider: boolean, powers: readonly Power[], steps: readonly Step[]): Promise<void> => runCase(t, async (t, fail) => {
        const store: AuthStore = await createStore(t)
        let isRequired = false
        const made = await startMailApp(t, {
          store,
          dataSecret: DATA_SECRET,
          secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired }),
          passkeys: new Passkeys({ name: 'Shop' }),
          pages: new Pages({ name: 'Shop' }),
          providers: [new ProvingProvider('a'), new OwnProvider('b')]
        })
        const { userId, copy } = await victimOf(t, made, { hasApp, isOfProvider })
        isRequired = !hasApp
        const before = await stateOf(made, userId)
        const old = new Browser(made.app, powers.includes('old session') ? copy : new Map())
        const fresh = new Browser(made.app)
        const attack = { made, powers, links: [], codes: [], passwords: powers.includes('password') && !isOfProvider ? [PASSWORD] : [] }

        for (const { does, choice, inOldSession } of steps) {
          await STEPS[does]({ ...attack, choice, browser: inOldSession ? old : fresh })
          const after = await stateOf(made, userId)
          if (JSON.stringify(after) !== JSON.stringify(before)) fail(`${does} made it ${JSON.stringify(after)}`)
          if (await userIdIn(fresh) === userId) fail(`${does} signed the attacker in`)
        }
      })
      const steps = fc.array(step, { minLength: 3, maxLength: 25 })
      await holds(t, fc.asyncProperty(fc.boolean(), fc.subarray([...ALL]), steps, run), 120)
    })
  }
}
