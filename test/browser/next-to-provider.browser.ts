/** The way to a real OpenID provider in Chromium, from the forms and redirects of an application with the headers of @fastify/helmet. */
import Fastify from 'fastify'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { en } from '../../lib/pages.js'
import { freePort } from '../helpers/loopback.js'
import { type OpenIdProvider, startOpenIdProvider } from '../helpers/openid-provider.js'
import { startChromium } from './chromium.js'
import { HOME, type Shop, send, startShop, titleOf } from './page-steps.js'
import { Visitor } from './visitor.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const LINKING = '/auth/dev/login?link=true&next=%2Fcart'

/** A page of the application with one button. */
const pageWith = (form: string): string => `${HOME}<form method="post" ${form}<button>Go</button></form>`

const chromium = await startChromium()

interface Setup extends Shop {
  idp: OpenIdProvider
  userId: string
  /** The providers at which Ada has an identity. */
  linked: () => Promise<string[]>
}

/** An application on `localhost` in which Ada is registered, and a provider on `127.0.0.1`, where she has another address: two sites. */
async function start (t: Test): Promise<Setup> {
  const port = await freePort()
  const idp = await startOpenIdProvider(t, { redirectUris: [`http://localhost:${port}/auth/dev/callback`] })
  idp.account.email = 'ada@elsewhere.example'
  const shop = await startShop(t, { providers: [idp.provider()] }, app => {
    app.get('/cart', async ({ principal }, reply) => reply.type('text/html').send(HOME.replace('<h1>Home', `<h1>${principal?.provider}`)))
    app.get('/sign-in', async (_request, reply) => reply.type('text/html').send(pageWith(
      'action="/auth/local/login"><input name="email"><input name="password"><input name="next">'
    )))
    app.get('/connect', async (_request, reply) => reply.redirect(LINKING))
    app.get('/settings', async (_request, reply) => reply.type('text/html').send(pageWith('action="/connect">')))
    app.addContentTypeParser('application/x-www-form-urlencoded', (_request, payload, done) => { payload.resume().on('end', () => done(null)) })
    app.post('/connect', async (_request, reply) => reply.redirect(LINKING, 303))
  }, port)
  const { userId }: { userId: string } = (await shop.app.inject({ method: 'POST', url: '/auth/local/register', payload: ADA })).json()
  return { ...shop, idp, userId, linked: async () => (await shop.app.auth.links(userId)).map(({ provider }) => provider) }
}

/** Signs Ada in with her password on the page of the plugin. */
async function signIn (page: Page, url: string, next: string): Promise<void> {
  await page.goto(`${url}/auth/pages/sign-in?${new URLSearchParams({ next })}`)
  await send(page, 'Sign in', ADA)
}

for (const scripts of [true, false]) {
  const how = `${scripts ? 'with' : 'without'} scripts`

  t.test(`attack 176: a sign-in whose next is a login route arrives at the provider and comes back, ${how}`, async t => {
    const { url, idp } = await start(t)
    const next = '/auth/dev/login?next=%2Fcart'
    const forms: Record<string, (page: Page) => Promise<void>> = {
      'the page of the plugin': async page => signIn(page, url, next),
      'a page of the application': async page => {
        await page.goto(`${url}/sign-in`)
        await send(page, 'Go', { ...ADA, next })
      }
    }
    for (const [form, submit] of Object.entries(forms)) {
      const visitor = await Visitor.with(chromium, t, { scripts })
      const page = await visitor.open(url)
      const before = idp.requests.length
      await submit(page)
      await page.waitForURL(`${url}/cart*`)
      t.equal(await titleOf(page), 'dev', form)
      t.ok(idp.requests.slice(before).some(path => path.startsWith('/interaction/')), 'the provider asked who it is')
      t.strictSame(visitor.complaints, [])
    }
  })

  t.test(`attack 175: a redirect of the application to a linking shows a page, whose button links, ${how}`, async t => {
    const signedIn = async (page: Page, url: string, path: string): Promise<void> => {
      await signIn(page, url, '/cart')
      await page.waitForURL(`${url}/cart*`)
      await page.goto(url + path)
    }
    const ways: Record<string, (page: Page, url: string) => Promise<void>> = {
      'a link': async (page, url) => signedIn(page, url, '/connect'),
      'a form': async (page, url) => {
        await signedIn(page, url, '/settings')
        await send(page, 'Go')
      },
      'the next of a sign-in': async (page, url) => signIn(page, url, LINKING),
      'the next of a sign-in, which redirects': async (page, url) => signIn(page, url, '/connect')
    }
    for (const [way, go] of Object.entries(ways)) {
      const { url, idp, linked } = await start(t)
      const visitor = await Visitor.with(chromium, t, { scripts })
      const page = await visitor.open(url)

      await go(page, url)
      await page.waitForURL(url + LINKING)

      t.equal(await titleOf(page), 'Add Dev', way)
      t.match(await page.locator('main').innerText(), ADA.email)
      t.notOk(idp.requests.includes('/auth'), 'the provider was not asked')
      t.strictSame(await linked(), ['local'])
      await send(page, 'Add Dev')
      await page.waitForURL(`${url}/cart*`)
      t.strictSame(await linked(), ['dev', 'local'], way)
      t.strictSame(visitor.complaints, [])
    }
  })

  t.test(`attack 175: no page of another site or of another origin of the site starts a linking, ${how}`, async t => {
    const { url, idp, linked } = await start(t)
    const login = `${url}/auth/dev/login`
    const visitor = await Visitor.with(chromium, t, { scripts })
    const page = await visitor.open(url)
    await signIn(page, url, '/cart')
    await page.waitForURL(`${url}/cart*`)
    const before = idp.requests.length
    const fields = '<input type="hidden" name="link" value="true"><input type="hidden" name="next" value="/cart"><button>Go</button>'
    // What is on the page, what the user clicks there, and what the application shows then.
    const pages: Record<string, [content: string, click: 'button' | 'a' | null, shown: string]> = {
      'a link': [`<a href="${url}${LINKING}">Go</a>`, 'a', ADA.email],
      'a page that navigates': [`<meta http-equiv="refresh" content="0; url=${url}${LINKING}">`, null, ADA.email],
      ...scripts && { 'a script': [`<script>location = '${url}${LINKING}'</script>`, null, ADA.email] },
      'a form that gets': [`<form action="${login}">${fields}</form>`, 'button', ADA.email],
      'a form that posts': [`<form method="post" action="${login}">${fields}</form>`, 'button', en.errors.cross_origin],
      'a form with a query': [`<form method="post" action="${url}${LINKING}">${fields}</form>`, 'button', en.errors.cross_origin]
    }
    for (const host of ['127.0.0.1', 'localhost']) {
      const port = await freePort()
      const foreign = Fastify()
      t.teardown(() => foreign.close())
      foreign.get<{ Params: { name: string } }>('/:name', async ({ params }, reply) => reply.type('text/html').send(HOME + pages[params.name]?.[0]))
      foreign.get('/a redirect', async (_request, reply) => reply.redirect(url + LINKING))
      await foreign.listen({ host, port })

      for (const [name, [, click, shown]] of [...Object.entries(pages), ['a redirect', ['', null, ADA.email]] as const]) {
        // A page that navigates at once may end its own loading.
        await page.goto(`http://${host}:${port}/${name}`, { waitUntil: 'commit' })
        if (click !== null) await page.locator(click).click()
        await page.waitForURL(to => to.href.startsWith(login))
        t.match(await page.locator('main').innerText(), shown, `${name} on ${host}`)
        t.equal(idp.requests.length, before, 'the provider was not asked')
      }
    }
    t.strictSame(await linked(), ['local'])
    await page.goto(url + LINKING)
    await send(page, 'Add Dev')
    await page.waitForURL(`${url}/cart*`)
    t.strictSame(await linked(), ['dev', 'local'], 'the button links')
  })
}
