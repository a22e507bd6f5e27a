/** Attack 200: a sign-in by someone else is told to the user, who ends it. */
import t, { type Test } from 'tap'
import Fastify from 'fastify'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore } from '../../index.js'
import { Pages } from '../../pages.js'
import { Passkeys } from '../../passkeys.js'
import { SESSION_SECRET, localProvider } from '../../../test/helpers/app.js'
import { Browser } from '../../../test/helpers/browser.js'
import { enrolAda, nextCode, startFactorApp } from '../../../test/helpers/factor-app.js'
import { ADA, type MailApp, confirmAddress, registerAt, startMailApp } from '../../../test/helpers/mail-app.js'
import { signInAt } from '../../../test/helpers/own-provider.js'
import { addAt, newDevice, signInBy } from '../../../test/helpers/passkey-app.js'
import { STORES } from '../../../test/helpers/stores.js'

const NOTICES: AuthPluginOptions = { notices: { newBrowser: true }, pages: new Pages({ name: 'Shop' }) }
const YEAR_S = 400 * 24 * 60 * 60
const GRACE = { email: 'grace@example.com', password: 'a nanosecond of wire' }

const newBrowsers = async ({ app, mails }: Pick<MailApp, 'app' | 'mails'>): Promise<number> => {
  await app.auth.mailsSent()
  return mails.all.filter(({ kind }) => kind === 'new-browser').length
}

/** Ada, with a confirmed address, who has signed in nowhere. */
async function withAda (t: Test, options: AuthPluginOptions = {}): Promise<MailApp & { userId: string }> {
  const made = await startMailApp(t, { ...NOTICES, ...options }, { signInByMail: true })
  const { userId } = await made.app.auth.createUser({ ...ADA, emailVerified: true })
  return { ...made, userId }
}

async function login (browser: Browser, user = ADA, headers = {}): Promise<void> {
  const { statusCode, body } = await browser.post('/auth/local/login', user, headers)
  if (statusCode !== 200) throw new Error(body)
}

const known = (browser: Browser): string[] => browser.cookies.get('svc_known')?.split('.') ?? []
