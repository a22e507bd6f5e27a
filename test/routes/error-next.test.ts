/** Where the errors of a sign-in at a provider are shown when its start names a page. */
import t, { type Test } from 'tap'
import { startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider } from '../helpers/own-provider.js'

const HTML = { accept: 'text/html' }

async function startBrowser (t: Test): Promise<Browser> {
  const options = { baseUrl: 'https://app.example', providers: [new OwnProvider('a')], loginPage: '/sign-in', rateLimit: { start: 2 } }
  return new Browser(await startApp(t, options))
}

/** Starts a sign-in, comes back with a code that the provider does not know, and resolves to where the error is shown. */
async function fail (browser: Browser, query: string, headers: Record<string, string> = {}, more = ''): Promise<string | undefined> {
  const { headers: { location = '' } } = await browser.get(`/auth/a/login?${query}`, { ...HTML, ...headers })
  const state = new URL(location).searchParams.get('state') ?? ''
  return (await browser.get(`/auth/a/callback?state=${state}&code=unknown${more}`, HTML)).headers.location
}

t.test('the error of a callback goes to the error_next of the login, which goes before the Referer', async t => {
  const browser = await startBrowser(t)

  t.equal(await fail(browser, 'error_next=/oops%3Fa=b', { referer: 'https://app.example/page' }), '/oops?a=b&error=provider_error')
})

t.test('an error_next elsewhere is not followed', async t => {
  t.equal(await fail(await startBrowser(t), 'error_next=https://evil.example/', { referer: 'https://app.example/page' }), '/page?error=provider_error')
  t.equal(await fail(await startBrowser(t), 'error_next=//evil.example/'), '/sign-in?error=provider_error')
})

t.test('the query of a callback names no page', async t => {
  const browser = await startBrowser(t)

  t.equal(await fail(browser, '', {}, '&error_next=/planted'), '/sign-in?error=provider_error')
  t.equal((await browser.get('/auth/a/callback?state=guess&error_next=/planted', HTML)).headers.location, '/sign-in?error=invalid_state')
})

t.test('the error of a start goes to error_next too', async t => {
  const browser = await startBrowser(t)
  const start = async () => (await browser.get('/auth/a/login?error_next=/oops', HTML)).headers.location

  await start()
  await start()
  t.equal(await start(), '/oops?error=rate_limited')
})
