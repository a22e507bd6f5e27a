/**
 * As a property of attack 113, attack 149, attack 151, attack 152, attack 153 and attack 175: what someone who is not
 * the user does in any order links nothing to an account, moves and strips nothing of it, and opens it only by a
 * mailbox or a provider that the rules take for the user.
 */
import { subscribe } from 'node:diagnostics_channel'
import fc from 'fast-check'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { Accounts, type AuthStore } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { Passkeys } from '../../lib/passkeys.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { advanceClock } from '../helpers/clock.js'
import { DATA_SECRET, enrolAt, nextCode } from '../helpers/factor-app.js'
import { type MailApp, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { FROM_OWN_PAGE, callbackOf, leaveFor, postLogin, signInAt } from '../helpers/own-provider.js'
import { holds, runCase } from '../helpers/properties.js'
import { SOME_STORES } from '../helpers/stores.js'

const NOW = 'ada@now.example'
const THEN = 'ada@then.example'
const MALLORY = 'mallory@example.com'
const [PASSWORD, OTHER] = ['correct horse', 'a password of the attacker']
const STATES = ['none', 'unproven', 'confirmed', 'vouched', 'disputed', 'moved'] as const
/** `required`: none was set up, and a sign-in sets one up. */
const FACTORS = ['none', 'app', 'required'] as const
const POWERS = [
  'verified address', 'unverified address', 'planted session', 'mailbox of now', 'mailbox of then', 'open session', 'signed URL', 'click'
] as const
const FOREIGN = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example', accept: 'text/html' }

/** What the rules let a step change: the password of a user with an app, who is still asked for a code; or anything. */
type Opened = 'nothing' | 'password' | 'account'

interface World {
  made: MailApp
  userId: string
  state: typeof STATES[number]
  factor: typeof FACTORS[number]
  powers: readonly typeof POWERS[number][]
  /** Of the user: their own, and the one with the session of the attacker. */
  own: Browser
  planted: Browser
  /** Of the attacker: without an account, with their own account, and with a session of the user that is not recent. */
  fresh: Browser
  mallory: Browser
  copy: Browser
  /** The account of the attacker, and its address. */
  malloryId: string | null
  squatted: string
  signIn: (browser: Browser) => Promise<void>
  choice: number
}

const one = <T>(choices: readonly T[], choice: number): T | undefined => choices[choice % Math.max(1, choices.length)]

/** The addresses whose mails the attacker reads. */
const readable = ({ powers }: World): string[] =>
  [MALLORY, ...powers.includes('mailbox of now') ? [NOW] : [], ...powers.includes('mailbox of then') ? [THEN] : []]

const isVerified = ({ state }: World): boolean => state === 'confirmed' || state === 'vouched' || state === 'moved'

function byMailbox (world: World): Opened {
  if (!world.powers.includes('mailbox of now')) return 'nothing'
  if (world.state === 'unproven') return 'account'
  if (!isVerified(world)) return 'nothing'
  return world.factor === 'app' ? 'password' : 'account'
}

/** Goes on to the provider, where the answer leads there, and comes back. */
async function follow (browser: Browser, { headers }: LightMyRequestResponse, subject: string): Promise<void> {
  const { location = '' } = headers
  if (URL.canParse(location)) await browser.get(callbackOf(location, { subject }), FOREIGN)
}

/** The request that `signInUrl` has made for who is signed in. */
async function signedAt (browser: Browser, provider: string): Promise<string | null> {
  const { location = '/' } = (await browser.get(`/connect/${provider}`)).headers
  return new URL(location, 'https://app.example').searchParams.get('signed')
}

const STEPS = {
  async 'sign in at a provider' (world: World): Promise<Opened> {
    const { powers, choice, fresh, mallory, factor } = world
    const emailVerified = powers.includes('verified address') && (choice % 2 === 0 || !powers.includes('unverified address'))
    const email = !emailVerified && !powers.includes('unverified address') ? MALLORY : one([NOW, NOW, THEN], choice) ?? NOW
    const provider = one(['b', 'a', 'b', 'b'], choice) ?? 'b'
    await signInAt(one([fresh, mallory], choice >> 2) ?? fresh, provider, { subject: `mallory at ${email}`, email, emailVerified })
    return emailVerified && isVerified(world) && factor === 'none' ? 'account' : 'nothing'
  },
  async 'ask for a mail' ({ fresh, mallory, choice }: World): Promise<Opened> {
    const email = one([NOW, THEN], choice >> 2)
    if (choice % 4 === 0) await mallory.post('/auth/local/verify-email')
    else if (choice % 4 === 1) await mallory.post('/auth/local/change-email', { email, current: OTHER })
    else await fresh.post(`/auth/local/${choice % 4 === 2 ? 'forgot-password' : 'mail-login'}`, { email })
    return 'nothing'
  },
  async 'use a mail' (world: World): Promise<Opened> {
    const { made, choice, fresh, mallory } = world
    // Those of the answers so far are sent.
    await new Promise<void>(resolve => setImmediate(resolve))
    const read = readable(world)
    const { kind, token, code } = one(made.mails.all.filter(mail => read.includes(mail.to)).toReversed(), choice >> 1) ?? {}
    const browser = one([fresh, mallory], choice) ?? fresh
    const existing = one([undefined, 'remove'], choice)
    if (kind === 'sign-in') await browser.post('/auth/local/mail-login/confirm', { ...(code === null ? { token } : { code }), existing })
    if (kind === 'reset-password') await browser.post('/auth/local/reset-password', { token, password: OTHER, existing })
    if (kind === 'change-email') await browser.post('/auth/local/change-email/confirm', { token })
    if (kind === 'verify-email') await browser.post('/auth/local/verify-email', { token, existing, ...(choice % 3 === 0 && { not_me: true, email: NOW }) })
    return byMailbox(world)
  },
  async 'set up an app' (world: World): Promise<Opened> {
    const { made, powers, choice, fresh, mallory, copy } = world
    const browser = one([fresh, mallory, ...powers.includes('open session') ? [copy] : []], choice) ?? fresh
    const begun = await browser.post('/auth/local/totp/enroll')
    await new Promise<void>(resolve => setImmediate(resolve))
    const mailCode = made.mails.all.findLast(({ to, kind }) => kind === 'enrolment' && readable(world).includes(to))?.code
    if (begun.statusCode === 200) await browser.post('/auth/local/totp/confirm', { code: totp(begun.json().secret), ...(mailCode && { mailCode }) })
    // The mailed code is asked only after a password: a provider that vouches for the address joins, and is let in.
    if (powers.includes('verified address') && isVerified(world) && world.factor === 'required') return 'account'
    return byMailbox(world)
  },
  async 'link an identity' ({ powers, choice, mallory, copy }: World): Promise<Opened> {
    const browser = powers.includes('open session') && choice % 2 === 0 ? copy : mallory
    const { url } = (await postLogin(browser, '/auth/b/login?link=true')).json()
    if (url !== undefined) await browser.get(callbackOf(url, { subject: 'mallory', email: powers.includes('verified address') ? NOW : MALLORY }))
    return 'nothing'
  },
  async 'change the account in the open session' ({ powers, choice, copy }: World): Promise<Opened> {
    const [path, fields] = one<[string, object]>([
      ['local/change-password', { password: OTHER }], ['local/set-password', { password: OTHER }], ['local/change-email', { email: MALLORY }],
      ['local/delete-account', {}], ['pages/unlink', { provider: 'a' }], ['pages/unlink', { provider: 'local' }], ['local/totp/remove', {}]
    ], choice) ?? ['', {}]
    if (powers.includes('open session')) await copy.post(`/auth/${path}`, fields)
    return 'nothing'
  },
  async 'consent in the open session' ({ powers, copy }: World): Promise<Opened> {
    const signed = powers.includes('open session') ? await signedAt(copy, 'a') : null
    const { url } = signed === null ? {} : (await copy.post('/auth/a/login', { signed }, FROM_OWN_PAGE)).json()
    if (url !== undefined) await copy.get(callbackOf(url, { subject: 'ada-a', email: MALLORY }))
    return 'nothing'
  },
  async 'lead the user to a route' (world: World): Promise<Opened> {
    const { powers, choice, own, planted, mallory, made, userId, signIn } = world
    if (!powers.includes('click')) return 'nothing'
    const [browser, subject] = choice % 3 === 0 && powers.includes('planted session') ? [planted, 'ada-b'] : [own, 'mallory-b']
    const signed = powers.includes('signed URL') ? await signedAt(mallory, 'b') : null
    const token = made.mails.all.findLast(({ to }) => readable(world).includes(to))?.token
    const fields = one<Record<string, string>>([
      { link: 'true' }, { reauthenticate: 'true' }, signed === null ? {} : { signed }, { next: '/auth/b/login?link=true' },
      { email: MALLORY, password: OTHER, name: 'Mallory', provider: 'a', existing: 'remove', everywhere: 'true', token: token ?? '', not_me: 'true' }
    ], choice) ?? {}
    // Most that could be started starts at a login route.
    const [method, path] = one([['GET', '/auth/b/login'], ...routes, ['POST', '/auth/b/login']], choice % 4 === 1 ? 0 : choice) ?? []
    if (method === 'GET') await follow(browser, await browser.get(`${path}?${new URLSearchParams(fields)}`, FOREIGN), subject)
    else await follow(browser, await browser.submit(String(path), fields, FOREIGN), subject)
    // A sign-in that the attacker has started leaves the user in another account.
    if (await userIdIn(own) !== userId) await signIn(own)
    return 'nothing'
  },
  async 'have the user press the button of a signed URL' ({ powers, own, mallory }: World): Promise<Opened> {
    const signed = powers.includes('signed URL') && powers.includes('click') ? await signedAt(mallory, 'b') : null
    const { url } = signed === null ? {} : (await own.post('/auth/b/login', { signed }, FROM_OWN_PAGE)).json()
    if (url !== undefined) await own.get(callbackOf(url, { subject: 'mallory-b' }))
    return 'nothing'
  },
  async 'have the user sign in in the planted session' ({ powers, planted, signIn }: World): Promise<Opened> {
    if (powers.includes('planted session')) await signIn(planted)
    return 'nothing'
  },
  async 'have the user prove the address of the attacker\'s account' (world: World): Promise<Opened> {
    const { made, powers, choice, planted, mallory, malloryId, squatted, state } = world
    // Where a provider vouches for the address to the attacker, or the attacker reads its mails, it is the attacker's too.
    const isTheirs = powers.includes('verified address') || powers.includes('mailbox of now')
    if (malloryId === null || squatted !== NOW || state !== 'none' || isTheirs) return 'nothing'
    const browser = choice % 2 === 0 && powers.includes('planted session') ? planted : new Browser(made.app)
    await browser.post('/auth/local/mail-login', { email: NOW })
    await new Promise<void>(resolve => setImmediate(resolve))
    const code = made.mails.all.findLast(({ to, kind }) => kind === 'sign-in' && to === NOW)?.code
    const proven = await browser.post('/auth/local/mail-login/confirm', { code, ...(browser === planted && { existing: 'remove' }) })
    if (proven.statusCode !== 200) return 'nothing'
    const { links, factors, password } = await stateOf(made, malloryId)
    if (links.join() !== `application ${malloryId}` || factors.length > 0 || password !== null) throw new Error(`The attacker keeps ${links.join()}`)
    if (await isSignedIn(mallory, malloryId)) throw new Error('The attacker keeps a session')
    return 'nothing'
  }
} satisfies Record<string, (world: World) => Promise<Opened>>

/** The routes of the application that was started last. */
let routes: Array<[method: string, path: string]> = []
subscribe('fastify.initialization', message => {
  routes = []
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, path }) => {
    if (path.startsWith('/auth/')) routes.push([String(method), path])
  })
})

async function stateOf ({ app }: MailApp, userId: string) {
  const { auth } = app
  const accounts = new Accounts(auth.store)
  const user = await auth.findUser({ userId })
  const { email, emailVerified, emailDisputed, name, generation } = user ?? {}
  return {
    user: { email, emailVerified, emailDisputed, name },
    generation,
    password: (await accounts.credentialOf(userId))?.passwordHash ?? null,
    factors: user === null ? [] : (await auth.factors(userId)).map(({ id }) => id),
    links: (await accounts.links(userId)).map(({ provider, subject }) => `${provider} ${subject}`).sort()
  }
}

/** Whether a guard lets the browser in as this user. */
const isSignedIn = async (browser: Browser, userId: string): Promise<boolean> =>
  await userIdIn(browser) === userId && (await browser.get('/private')).statusCode === 200

type Victim = Pick<World, 'userId' | 'signIn' | 'own' | 'copy'>

/** A user whose address and factors are in a state; the attacker has asked for mails before the last change. */
async function victimOf (t: Test, made: MailApp, { state, factor, fresh }: Pick<World, 'state' | 'factor' | 'fresh'>): Promise<Victim> {
  const browser = new Browser(made.app)
  const hasPassword = state === 'unproven' || state === 'confirmed' || state === 'moved'
  const email = state === 'moved' ? THEN : NOW
  const person = { subject: 'ada-a', ...(state !== 'none' && { email }) }
  if (!hasPassword) await signInAt(browser, 'a', person)
  else {
    const token = await registerAt({ ...made, browser }, { email, password: PASSWORD })
    if (state !== 'unproven') await confirmAddress(browser, token)
  }
  for (const path of ['forgot-password', 'mail-login']) await fresh.post(`/auth/local/${path}`, { email })
  const last = { ...person, ...(state === 'disputed' && { emailVerified: false }) }
  if (state === 'disputed') await signInAt(browser, 'a', last)
  if (state === 'moved') {
    await browser.post('/auth/local/change-email', { email: NOW, current: PASSWORD })
    await browser.post('/auth/local/change-email/confirm', { token: (await made.mails.next('change-email')).token })
  }
  const secret = factor === 'app' ? (await enrolAt(t, browser)).secret : null
  const copy = new Browser(made.app, browser.cookies)
  advanceClock(t, 11 * 60_000)
  const own = new Browser(made.app)
  const signIn = async (browser: Browser): Promise<void> => {
    if (hasPassword) await browser.post('/auth/local/login', { email: state === 'moved' ? NOW : email, password: PASSWORD })
    else await browser.get(await leaveFor(browser, '/auth/a/login', last))
    if (secret !== null) await browser.post('/auth/local/second-factor', { code: nextCode(t, secret) })
  }
  await signIn(own)
  return { userId: await userIdIn(own) ?? '', own, copy, signIn }
}

t.setTimeout(600_000)

for (const [kind, createStore] of Object.entries(SOME_STORES)) {
  t.test(`attack 113, attack 149, attack 151, attack 152, attack 153, attack 175: nothing but the user's own act changes an account, on ${kind}`, async t => {
    const run = async (
      setting: Pick<World, 'state' | 'factor' | 'powers' | 'squatted'>, steps: ReadonlyArray<{ does: keyof typeof STEPS, choice: number }>
    ): Promise<void> => runCase(t, async (t, fail) => {
      const store: AuthStore = await createStore(t)
      let isRequired = false
      const made = await startMailApp(t, {
        store,
        dataSecret: DATA_SECRET,
        rateLimit: {},
        secondFactor: new SecondFactor({ issuer: 'Shop', required: () => isRequired, trusts: () => true }),
        passkeys: new Passkeys({ name: 'Shop' }),
        pages: new Pages({ name: 'Shop' })
      }, { signInByMail: true, mails: { limits: false } })
      const [fresh, mallory] = [new Browser(made.app), new Browser(made.app)]
      const victim = await victimOf(t, made, { ...setting, fresh })
      const { userId } = victim
      await mallory.post('/auth/local/register', { email: setting.squatted, password: OTHER })
      const malloryId = await userIdIn(mallory)
      const planted = new Browser(made.app, mallory.cookies)
      isRequired = setting.factor === 'required'
      const world = { ...setting, ...victim, made, fresh, mallory, planted, malloryId }
      let before = await stateOf(made, userId)
      if (userId === '' || before.user.email !== (setting.state === 'none' ? null : NOW)) fail('The user is not as described')

      for (const { does, choice } of steps) {
        const opened = await STEPS[does]({ ...world, choice })
        const after = await stateOf(made, userId)
        // From here on it is an account of the attacker.
        if (opened === 'account' && JSON.stringify(after) !== JSON.stringify(before)) return
        const isIn = await isSignedIn(fresh, userId) || await isSignedIn(mallory, userId)
        if (opened === 'account' && isIn) return
        if (isIn) fail(`${does} signed the attacker in`)
        const { password, generation, links } = after
        if (opened === 'password') {
          const isLocal = (link: string): boolean => link.startsWith('local ')
          const others = before.links.filter(link => !isLocal(link))
          before = { ...before, password, generation, links: [...others, ...links.filter(isLocal)].sort() }
        }
        if (JSON.stringify(after) !== JSON.stringify(before)) fail(`${does} made it ${JSON.stringify(after)}`)
        const stolen = malloryId === null ? [] : (await stateOf(made, malloryId)).links.filter(link => / ada-[ab]$/.test(link))
        if (stolen.length > 0) fail(`${does} linked the user's identity to the attacker's account`)
      }
    })
    const setting = fc.record({
      state: fc.constantFrom(...STATES), factor: fc.constantFrom(...FACTORS), powers: fc.subarray([...POWERS]), squatted: fc.constantFrom(MALLORY, NOW, THEN)
    })
    const step = fc.record({ does: fc.constantFrom(...Object.keys(STEPS) as Array<keyof typeof STEPS>), choice: fc.nat(200) })
    await holds(t, fc.asyncProperty(setting, fc.array(step, { minLength: 5, maxLength: 30 }), run), 150)
  })
}
