import type { Test } from 'tap'
import type { AuthPluginOptions, LocalIdentityProviderOptions, User } from '../../lib/index.js'
import { SecondFactor, type SecondFactorOptions } from '../../lib/second-factor.js'
import { totp } from '../../lib/testing.js'
import { userIdIn } from './app.js'
import type { Browser } from './browser.js'
import { advanceClock } from './clock.js'
import { ADA, type MailApp, confirmAddress, registerAt, startMailApp } from './mail-app.js'

export const DATA_SECRET = 'the data secret of the tests, 32 and more'

/** The time step of codes. */
const STEP_MS = 30_000

/** An application with second factors, passwords, two providers and mails. */
export async function startFactorApp (
  t: Test,
  factor: Partial<SecondFactorOptions> = {},
  options: AuthPluginOptions = {},
  local: LocalIdentityProviderOptions = {}
): Promise<MailApp> {
  return startMailApp(t, {
    dataSecret: DATA_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop', ...factor }), ...options
  }, local)
}

/** What a user has to sign in with. */
export interface Enrolled {
  userId: string
  secret: string
  recoveryCodes: string[]
}

/** A code that was not used: the next time step begins. */
export function nextCode (t: Test, secret: string): string {
  advanceClock(t, STEP_MS)
  return totp(secret)
}

/** Sets up an authenticator app for the signed-in user. */
export async function enrolAt (t: Test, browser: Browser): Promise<Enrolled> {
  const userId = await userIdIn(browser) ?? ''
  const begun = await browser.post('/auth/local/totp/enroll')
  t.equal(begun.statusCode, 200, begun.body)
  const { secret } = begun.json<{ secret: string }>()
  const confirmed = await browser.post('/auth/local/totp/confirm', { code: nextCode(t, secret) })
  t.equal(confirmed.statusCode, 200, confirmed.body)
  return { userId, secret, recoveryCodes: confirmed.json().recoveryCodes }
}

/** Registers Ada with an authenticator app, and a confirmed address. */
export async function enrolAda (t: Test, { app, browser, mails }: MailApp): Promise<Enrolled & { user: User | null }> {
  const token = await registerAt({ app, browser, mails })
  t.equal((await confirmAddress(browser, token)).statusCode, 204)
  const enrolled = await enrolAt(t, browser)
  return { ...enrolled, user: await app.auth.findUser({ userId: enrolled.userId }) }
}

/** Sends e-mail and password, of which the code is still asked. */
export async function waitAt (t: Test, browser: Browser, user = ADA): Promise<void> {
  const answer = await browser.post('/auth/local/login', user)
  t.match([answer.statusCode, answer.json()], [401, { code: 'second_factor_required', expiresIn: 600 }])
}
