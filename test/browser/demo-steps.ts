/** What users do with the demonstration. */
import type { Browser, Page } from 'playwright-core'
import root, { type Test } from 'tap'
import { Visitor } from './visitor.js'

/** The paths of the pages of the plugin. */
export const SIGN_IN = '/auth/pages/sign-in'
export const ACCOUNT = '/auth/pages/account'

export interface AdmittedUser {
  name: string
  email: string
  password: string
}

export interface AuthenticatedUser {
  visitor: Visitor
  page: Page
}

/** Opens a page of the demonstration in a browser of its own. */
export type Arrive = (path?: string, options?: { scripts?: boolean }) => Promise<AuthenticatedUser>

/** Tests what users do at a demonstration. The browsers log no error, and no violation of the policy. */
export function scenesAt (url: string, chromium: Browser, parent: Test = root) {
  return async (name: string, act: (t: Test, arrive: Arrive) => Promise<void>): Promise<void> => {
    await parent.test(name, async t => {
      const visitors: Visitor[] = []
      await act(t, async (path = SIGN_IN, options = {}) => {
        const visitor = await Visitor.with(chromium, t, options)
        visitors.push(visitor)
        return { visitor, page: await visitor.open(url + path) }
      })
      const complaints = visitors.flatMap(({ complaints }) => complaints)
      // The browser notes the status of a page that shows the error of a form.
      t.strictSame(complaints.filter(complaint => !/status of 40[013] .*\/auth\/local\//.test(complaint)), [])
    })
  }
}

/** Returns the address of a page of the demonstration without the origin, once it is at this path. */
export function arrivalsAt (url: string) {
  return async (page: Page, path: string): Promise<string> => {
    await page.waitForURL(target => target.origin === url && target.pathname === path)
    // Behind a callback a URL ends with it, so that no fragment of the provider stays.
    return page.url().slice(url.length).replace(/#$/, '')
  }
}

/** From the sign-in page. */
export async function register (page: Page, { name, email, password }: AdmittedUser): Promise<void> {
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Create an account' }).click()
}

export async function signIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** On the page that asks a signed-in user to authenticate again. */
export async function confirm (page: Page, password: string): Promise<void> {
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Confirm' }).click()
}

/** Opens a row of the account page, unless it is open. */
export async function openRow (page: Page, title: string): Promise<void> {
  const has = page.getByRole('heading', { name: title, exact: true })
  const closed = page.locator('details:not([open]) > summary', { has })
  if (await closed.count() > 0) await closed.click()
}

/** At the development provider. */
export async function consent (page: Page, { name, email }: { name: string, email: string }): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Continue' }).click()
}
