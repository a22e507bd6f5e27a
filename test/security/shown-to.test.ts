import t, { type Test } from 'tap'
import { Passkeys } from '../../lib/passkeys.js'
import { Pages, en } from '../../lib/pages.js'
import { Browser } from '../helpers/browser.js'
import { enrolAt, startFactorApp } from '../helpers/factor-app.js'
import { ADA, type MailApp, NEW_PASSWORD, registerAt, resetTokenOf } from '../helpers/mail-app.js'
import { linkAt } from '../helpers/own-provider.js'
import { type ShownForm, type ShownPage, readerOf } from '../pages/page.js'

const BOB = { email: 'bob@example.com', password: 'battery staple' }

/** One browser in which Ada's pages are open, each with the token of a link of hers where it has one. */
async function withPages (t: Test): Promise<MailApp & { pages: ShownPage[], tokens: string[] }> {
  const setting = await startFactorApp(t, {}, {
    pages: new Pages({ name: 'Shop' }), passkeys: new Passkeys({ name: 'Shop' })
  })
  const { browser, mails } = setting
  const verification = await registerAt(setting)
  const reset = await resetTokenOf(setting)
  await linkAt(browser, 'a', { subject: 'ada-a' })
  const pages = ['account', 'factors', 'confirm', 'sign-in'].map(name => `/auth/pages/${name}`)
  const links = [`verify-email?token=${verification}`, `reset-password?token=${reset}`].map(link => `/auth/local/${link}`)
  const { open } = readerOf(t, browser)
  const shown: ShownPage[] = []
  for (const path of [...links, ...pages, '/auth/b/login?link=true']) shown.push(await open(path))
  await browser.post('/auth/local/change-email', { email: 'ada@elsewhere.example', current: ADA.password })
  shown.push(await open(`/auth/local/change-email/confirm?token=${(await mails.next('change-email')).token}`))
  return { ...setting, pages: shown, tokens: [verification, reset] }
}

/** What the user would type into the fields of a form. */
const typedInto = ({ names, hidden }: ShownForm): Record<string, string> => Object.fromEntries(names
  .filter(name => !(name in hidden))
  .map(name => [name, { email: 'mallory@example.com', password: NEW_PASSWORD, current: BOB.password, code: '123456' }[name] ?? 'x']))

t.test('attack 172: each form and button of the pages of a signed-in user names that user, and not by their id', async t => {
  const { app, pages } = await withPages(t)
  const user = await app.auth.findUser({ email: ADA.email })
  const forms = pages.flatMap(({ forms, url }) => forms.map(form => [url, form] as const))

  t.ok(forms.length > 15)
  for (const [url, { action, hidden }] of forms) t.match(hidden.shown_to, /^[\w-]{16}$/, `${action} on ${url}`)
  t.equal(new Set(forms.map(([, { hidden }]) => hidden.shown_to)).size, 1)
  t.notOk(user?.userId.includes(String(forms[0]?.[1].hidden.shown_to)))
  const { open } = readerOf(t, new Browser(app))
  for (const path of ['sign-in', 'register', 'forgot-password']) {
    const { forms } = await open(`/auth/pages/${path}`)
    t.notOk(forms.some(({ names }) => names.includes('shown_to')), `a visitor's ${path}`)
  }
})

t.test('attack 172: a form that was shown to another user does nothing, and its page is shown anew with empty fields', async t => {
  const { app, browser, pages, mails } = await withPages(t)
  const ada = await app.auth.findUser({ email: ADA.email })
  await browser.post('/auth/logout')
  await browser.post('/auth/local/register', BOB)
  await mails.next('verify-email')
  const bob = await app.auth.findUser({ email: BOB.email })
  const before = [ada, bob, await app.auth.links(String(bob?.userId)), await app.auth.sessions(String(bob?.userId))]

  for (const form of pages.flatMap(({ forms }) => forms)) {
    for (const target of new Set([form.action])) {
      const answer = await browser.submit(target, { ...typedInto(form), ...form.hidden })
      if (answer.statusCode !== 400) t.equal(new URL(String(answer.headers.location), 'https://app.example').searchParams.get('error'), 'invalid_state', target)
      else t.match(answer.body, en.errors.shown_to_another, target)
      t.notMatch(answer.body, /mallory|battery staple/, `${target}: nothing that was typed is shown`)
    }
  }
  t.strictSame([
    await app.auth.findUser({ userId: String(ada?.userId) }), await app.auth.findUser({ userId: String(bob?.userId) }),
    await app.auth.links(String(bob?.userId)), await app.auth.sessions(String(bob?.userId))
  ], before)
})

t.test('the same forms work for their user, and for a caller that does not say whom it was shown to', async t => {
  const { app, browser, pages } = await withPages(t)
  const rename = pages.flatMap(({ forms }) => forms).find(({ action }) => action === '/auth/pages/name')
  t.equal((await browser.submit('/auth/pages/name', { ...rename?.hidden, name: 'Ada L.' })).statusCode, 303)
  t.equal((await browser.post('/auth/pages/name', { name: 'Ada K.' })).statusCode, 204)
  t.equal((await app.auth.findUser({ email: ADA.email }))?.name, 'Ada K.')
  for (const shown of [['x', 'x'], '', 5, null]) {
    t.equal((await browser.post('/auth/pages/name', { name: 'Mallory', shown_to: shown })).statusCode, 400, JSON.stringify(shown))
  }
  await enrolAt(t, browser)
  t.equal((await app.auth.findUser({ email: ADA.email }))?.name, 'Ada K.')
})
