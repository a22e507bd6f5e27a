/** What is around each page: its header, its links and its languages. */
import t, { type Test } from 'tap'
import { type AuthPluginOptions } from '../../lib/index.js'
import { Pages, type PagesOptions, de, en } from '../../lib/pages.js'
import type { Browser } from '../helpers/browser.js'
import { startMailApp } from '../helpers/mail-app.js'

const SIGN_IN = '/auth/pages/sign-in'

async function start (t: Test, pages: Partial<PagesOptions> = {}, options: AuthPluginOptions = {}): Promise<Browser> {
  return (await startMailApp(t, { pages: new Pages({ name: 'Shop', ...pages }), ...options })).browser
}

const partOf = (html: string, part: string): string => new RegExp(`<(\\w+) [^>]*data-part="${part}"[^]*?</\\1>`).exec(html)?.[0] ?? ''

const languageOf = (html: string): string | undefined => /<html lang="([^"]*)"/.exec(html)?.[1]

t.test('each part that may be styled has its name', async t => {
  const browser = await start(t, { links: [{ label: 'Privacy', href: '/privacy' }] }, { session: { secret: 'x'.repeat(32), remember: { days: 1 } } })
  const { body: shown } = await browser.get(`${SIGN_IN}?done=x`, { accept: 'text/html' })
  const { body: failed } = await browser.submit('/auth/local/register', { email: 'ada@example.com', password: 'short', error_next: '/auth/pages/register' })
  const parts = ['page', 'header', 'card', 'title', 'error', 'field', 'label', 'hint', 'input', 'submit', 'link', 'footer']

  for (const part of parts) t.match(shown + failed, ` data-part="${part}"`)
  t.match(shown, '<body class="card" data-part="page">')
})

t.test('the header has the picture for light and dark pages, and the name unless the picture shows it', async t => {
  const logo = { logo: '/logo.svg', logoDark: '/logo-dark.svg' }
  const both = partOf((await (await start(t, logo)).get(SIGN_IN)).body, 'header')
  const alone = partOf((await (await start(t, { ...logo, logoHasName: true })).get(SIGN_IN)).body, 'header')
  const named = partOf((await (await start(t, { logoHasName: true })).get(SIGN_IN)).body, 'header')

  t.match(both, '<source media="(prefers-color-scheme: dark)" srcset="/logo-dark.svg"><img class="logo" src="/logo.svg" alt="">')
  t.match(both, '<span>Shop</span>')
  t.match(alone, '<img class="logo" src="/logo.svg" alt="Shop">')
  t.notMatch(alone, '<span>')
  t.match(named, '<span>Shop</span>')
  t.match((await (await start(t, { layout: 'plain' })).get(SIGN_IN)).body, '<body class="plain" data-part="page">')
})

t.test('links are labelled in the language of the page, else by the first of their labels', async t => {
  const links = [
    { label: 'Help', href: '/help' },
    { label: { fr: 'Confidentialité', de: 'Datenschutz' }, href: '/privacy' }
  ]
  const browser = await start(t, { links })
  for (const [language, label] of [['de-AT', 'Datenschutz'], ['fr', 'Confidentialité'], ['en', 'Confidentialité']] as const) {
    const footer = partOf((await browser.get(SIGN_IN, { 'accept-language': language })).body, 'footer')
    t.match(footer, '<a href="/help">Help</a>')
    t.match(footer, `<a href="/privacy">${label}</a>`)
  }
})

t.test('a visitor chooses a language by a link, and keeps it from page to page', async t => {
  const browser = await start(t, { languages: [en, de] })
  const { body } = await browser.get(`${SIGN_IN}?next=/cart`)
  t.match(partOf(body, 'footer'), '<summary>English</summary><a href="?next=%2Fcart&#38;lang=de" lang="de" hreflang="de">Deutsch</a>')

  const chosen = await browser.get(`${SIGN_IN}?next=%2Fcart&lang=de`)
  t.equal(languageOf(chosen.body), 'de')
  t.match(chosen.headers['set-cookie'], /svc_lang=de; Max-Age=31536000; Path=\/auth; HttpOnly; SameSite=Lax/)
  t.equal(languageOf((await browser.get('/auth/pages/register')).body), 'de')
  const failed = await browser.submit('/auth/local/login', { email: 'ada@example.com', password: 'wrong horse' })
  t.equal(languageOf(failed.body), 'de')
  t.equal(partOf(failed.body, 'footer'), '', 'a form that failed is at a URL of its own')
  t.equal(languageOf((await browser.get(`${SIGN_IN}?lang=en`)).body), 'en')
  t.equal(languageOf((await browser.get(`${SIGN_IN}?lang=xx`)).body), 'en', 'one that there is not is none')
})

t.test('pages of one language, and without links, have no footer', async t => {
  t.equal(partOf((await (await start(t, { languages: [en] })).get(SIGN_IN)).body, 'footer'), '')
})

t.test('what is wrong with a field is said below it', async t => {
  const browser = await start(t)
  const { body } = await browser.submit('/auth/local/register', { email: 'ada@example.com', password: 'short', error_next: '/auth/pages/register' })
  t.match(body, /aria-describedby="failure" autofocus name="password"[^>]*>(?:(?!<\/label>)[^])*<\/label><p class="error" [^>]*id="failure">/)
  t.equal(body.split('id="failure"').length, 2)
  t.notMatch(body, '<!--error')
})
