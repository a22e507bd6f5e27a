/** The page that a visitor wanted is there after a mail, in the browser that asked for it. */
import t, { type Test } from 'tap'
import type { LocalIdentityProviderOptions } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { Browser } from '../helpers/browser.js'
import { ADA, BASE_URL, type MailApp, NEW_PASSWORD, confirmAddress, registerAt, startMailApp } from '../helpers/mail-app.js'
import { type Reader, type ShownPage, readerOf } from './page.js'

const SIGN_IN = '/auth/pages/sign-in'

async function start (t: Test, local: LocalIdentityProviderOptions = {}): Promise<MailApp & Reader> {
  const app = await startMailApp(t, { pages: new Pages({ name: 'Shop' }) }, local)
  return { ...app, ...readerOf(t, app.browser) }
}

const pathOf = (url: string | null): string => String(url).replace(BASE_URL, '')

/** Each way through a mail: asks for it from, or for, a page with this query, and uses its link as a reader; the page at the end. */
const WAYS: Record<string, {
  local?: LocalIdentityProviderOptions
  ask: (app: MailApp & Reader, query: string) => Promise<string>
  use: (reader: Reader, link: string) => Promise<ShownPage>
}> = {
  'a registration that begins with the address': {
    local: { registration: { verify: 'first' } },
    async ask ({ open, send, mails }, query) {
      await send((await open(`/auth/pages/register${query}`)).forms[0], { email: ADA.email })
      return pathOf((await mails.next('register')).url)
    },
    use: async ({ open, send }, link) => send((await open(link)).forms[0], { password: ADA.password })
  },
  'a registration whose address must be confirmed': {
    local: { registration: { verify: 'required' } },
    async ask ({ open, send, mails }, query) {
      await send((await open(`/auth/pages/register${query}`)).forms[0], ADA)
      return pathOf((await mails.next('verify-email')).url)
    },
    async use ({ open, send }, link) {
      return send((await send((await open(link)).forms[0], { password: ADA.password })).forms[0], ADA)
    }
  },
  'a forgotten password': {
    async ask (app, query) {
      const owner = new Browser(app.app)
      await confirmAddress(owner, await registerAt({ ...app, browser: owner }))
      await app.send((await app.open(`/auth/pages/forgot-password${query}`)).forms[0], { email: ADA.email })
      return pathOf((await app.mails.next('reset-password')).url)
    },
    async use ({ open, send }, link) {
      const signIn = await send((await open(link)).forms[0], { password: NEW_PASSWORD })
      return send(signIn.forms[0], { email: ADA.email, password: NEW_PASSWORD })
    }
  },
  'a new address': {
    async ask (app, query) {
      await registerAt(app)
      await app.browser.submit('/auth/local/change-email', { email: 'ada@new.example', current: ADA.password, next: `/sent${query}` })
      return pathOf((await app.mails.next('change-email')).url)
    },
    async use ({ open, send }, link) {
      const [form] = (await open(link)).forms
      const page = await send(form, form?.names.includes('password') === true ? { password: ADA.password } : {})
      const signIn = page.formOf('/auth/local/login')
      return signIn === undefined ? page : send(signIn, { email: 'ada@new.example', password: ADA.password })
    }
  }
}

/** Where a way ends without a page that is wanted. */
const ENDS: Record<string, string> = { 'a new address': '/auth/pages/account' }

for (const [name, { local, ask, use }] of Object.entries(WAYS)) {
  t.test(`attack 26: next survives ${name}, in the browser that asked alone, as a path of this application`, async t => {
    const ends = async (query: string, isSameBrowser: boolean): Promise<string> => {
      const app = await start(t, local)
      const link = await ask(app, query)
      return (await use(isSameBrowser ? app : readerOf(t, new Browser(app.app)), link)).url
    }
    t.equal(await ends('?next=/cart%3Fitem%3D1', true), '/cart?item=1')
    t.equal(await ends('?next=/cart', false), '/', 'another browser')
    t.equal(await ends('?next=//evil.example/', true), ENDS[name] ?? '/')
    t.equal(await ends('', true), ENDS[name] ?? '/')
  })
}

t.test('the page of an earlier mail is not that of a later one', async t => {
  const app = await start(t)
  const { open, send, browser } = app
  const owner = new Browser(app.app)
  await confirmAddress(owner, await registerAt({ ...app, browser: owner }))
  await send((await open('/auth/pages/forgot-password?next=/cart')).forms[0], { email: ADA.email })
  t.equal(browser.cookies.get('svc_next'), '/cart')
  await send((await open('/auth/pages/forgot-password')).forms[0], { email: ADA.email })
  t.equal(browser.cookies.has('svc_next'), false)
  browser.cookies.set('svc_next', 'https://evil.example/')
  const page = await open(pathOf((await app.mails.next('reset-password')).url))
  t.equal(page.forms[0]?.hidden.next, undefined)
  t.match((await send(page.forms[0], { password: NEW_PASSWORD })).url, SIGN_IN)
})
