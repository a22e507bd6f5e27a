import t from 'tap'
import { type SignIn, SignInRefused } from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { Browser } from '../helpers/browser.js'
import { ADA, startMailApp } from '../helpers/mail-app.js'
import { leaveFor } from '../helpers/own-provider.js'

const HTML = '"><script src=//evil.example></script><img src=//evil.example onerror=alert(1)>\''
const ACCOUNT = '/auth/pages/account'

/** Whether a page has what an attacker wrote as text alone. */
function hasNoneOf (body: string): boolean {
  return !/<script|<img|onerror=(?!alert)|evil\.example['"]?>/i.test(body.replaceAll('&#60;', '[').replaceAll('&#62;', ']'))
}

t.test('attack 118: HTML in a name, in claims of a provider, in a user agent, an error and in a query stays text', async t => {
  const pages = new Pages({ name: HTML, links: [{ label: HTML, href: '/privacy' }] })
  const onSignIn = ({ request }: SignIn): void => {
    if (request.headers['x-refused'] === 'yes') throw new SignInRefused('not_invited', HTML)
  }
  const { app, browser } = await startMailApp(t, { pages, onSignIn })
  const bodies: string[] = []
  const page = async (path: string, headers = {}) => {
    const answer = await browser.get(path, headers)
    bodies.push(answer.body)
    return answer
  }

  for (const name of ['error', 'done', 'next', 'email', 'name']) await page(`/auth/pages/sign-in?${name}=${encodeURIComponent(HTML)}`)
  await page(`/auth/pages/register?next=${encodeURIComponent(`/${HTML}`)}`)
  const refused = await browser.submit('/auth/local/register', { email: HTML, password: 'short', name: HTML, error_next: '/auth/pages/register' })
  t.equal(refused.statusCode, 400)
  bodies.push(refused.body)

  const user = new Browser(app)
  await user.post('/auth/local/register', { ...ADA, name: HTML }, { 'user-agent': HTML })
  await user.get(await leaveFor(user, '/auth/a/login?link=true', { subject: 'a', claims: { email: HTML } }, { 'sec-fetch-site': 'same-origin' }))
  for (const path of [ACCOUNT, '/auth/pages/confirm', '/auth/pages/sign-in']) bodies.push((await user.get(path)).body)

  const uninvited = await user.submit('/auth/local/login', { ...ADA, error_next: '/auth/pages/sign-in' }, { 'x-refused': 'yes' })
  t.equal(uninvited.statusCode, 403)
  t.match(uninvited.body, '<p class="error" data-part="error" role="alert" id="failure">&#34;&#62;&#60;script', 'the sentence of the application')
  bodies.push(uninvited.body)

  t.ok(bodies.some(body => body.includes('&#60;script')), 'it is shown')
  for (const body of bodies) t.ok(hasNoneOf(body), body.slice(0, 200))
})

t.test('attack 118: the policy of the pages runs nothing and names no other origin', async t => {
  const { browser } = await startMailApp(t, { pages: new Pages({ name: 'Shop', logo: '/logo.svg', stylesheet: '/auth.css' }) })
  const { headers } = await browser.get('/auth/pages/sign-in')
  t.match(headers['content-security-policy'], new RegExp('^default-src \'none\'; style-src \'sha256-[\\w+/]{43}=\' \'self\'; ' +
    'img-src \'self\'; form-action \'self\'; frame-ancestors \'none\'; base-uri \'none\'$'))
  t.match(headers, { 'cache-control': 'no-store, no-transform', 'x-robots-tag': 'noindex', 'referrer-policy': 'no-referrer' })
})

t.test('attack 118: a look that would load from elsewhere is refused', async t => {
  for (const path of ['//evil.example/logo.svg', 'https://evil.example/x', 'javascript:alert(1)', 'logo.svg', '/\\evil.example', `/${HTML}`, 1]) {
    t.throws(() => new Pages({ name: 'Shop', logo: path as string }), { message: /^Pages: logo must be a path of this application/ })
    t.throws(() => new Pages({ name: 'Shop', stylesheet: path as string }), { message: /^Pages: stylesheet must be a path/ })
  }
  for (const href of ['javascript:alert(1)', 'http://evil.example', '//evil.example', '']) {
    t.throws(() => new Pages({ name: 'Shop', links: [{ label: 'Privacy', href }] }), { message: /^Pages: links must be a list/ })
  }
})

t.test('attack 118: no Accept-Language makes an error or another language', async t => {
  const { browser } = await startMailApp(t, { pages: new Pages({ name: 'Shop' }) })
  for (const language of ['<script>', 'x'.repeat(12_000), ',;q=,;;q=2', 'de;q=0', '__proto__', '*', 'de-'.repeat(3000)]) {
    const { statusCode, body } = await browser.get('/auth/pages/sign-in', { 'accept-language': language })
    t.equal(statusCode, 200)
    t.match(body, /<html lang="(?:en|de)"/)
  }
  // A server that admits long headers: only what a browser may send is looked at.
  const { body } = await browser.get('/auth/pages/sign-in', { 'accept-language': `${'x,'.repeat(500_000)}de` })
  t.match(body, '<html lang="en"')
})
