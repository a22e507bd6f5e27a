import type { FastifyServerOptions } from 'fastify'
import type { Page } from 'playwright-core'
import t from 'tap'
import { freePort } from '../helpers/loopback.js'
import { localProvider, startApp } from '../helpers/app.js'
import { startOpenIdProvider } from '../helpers/openid-provider.js'
import { foreignTargets, ownTargets } from '../helpers/redirect-targets.js'
import { some } from '../helpers/thorough.js'
import { startChromium } from './chromium.js'

const BOB = { email: 'bob@example.com', password: 'correct horse' }

const FORM = `<!doctype html><meta charset="utf-8">
<form method="post" action="/auth/local/login">
  <input name="email"><input name="password" type="password"><input name="next" type="hidden"><input name="error_next" type="hidden">
  <button>Sign in</button>
</form>`

t.test('attack 26, attack 27: Chromium stays here, wherever it is told to go next', async t => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const idp = await startOpenIdProvider(t, { redirectUris: [`${origin}/auth/dev/callback`] })
  // Whatever the path, the form is there.
  const server: FastifyServerOptions = { rewriteUrl: ({ url = '/' }) => url.startsWith('/auth/') ? url : '/sign-in' }
  const app = await startApp(t, { baseUrl: origin, providers: [idp.provider()], local: localProvider(), rateLimit: false }, server, app => {
    app.get('/sign-in', async (_request, reply) => reply.type('text/html').send(FORM))
  })
  await app.inject({ method: 'POST', url: '/auth/local/register', payload: BOB })
  await app.listen({ host: '127.0.0.1', port })
  const chromium = await startChromium()
  const destinations = some([
    ...foreignTargets(origin).map(target => [target, '/'] as const),
    ...ownTargets(origin)
  ], 16)
    // What stands in an address must fit into the 16 KiB of headers that Node takes.
    .filter(([target]) => encodeURIComponent(target.toWellFormed()).length < 10_000)
  const astray: unknown[] = []

  // Several people at once, each with a browser of his own.
  const left = destinations.values()
  await Promise.all(Array.from({ length: 4 }, async () => {
    const context = await chromium.newContext()
    const elsewhere: string[] = []
    // Not `route`, which is not asked about the request that follows a redirect.
    context.on('request', request => {
      if (![origin, idp.issuer].includes(new URL(request.url()).origin)) elsewhere.push(request.url())
    })
    let page = await openForm()
    for (const [target, path] of left) {
      // Where error_next is ignored, the error is shown on the page from which the form was sent: that to which `next` led.
      const shown = new URL(path, origin)
      shown.searchParams.set('error', 'invalid')
      const ways = {
        next: [path, async () => submitForm(page, { ...BOB, next: target })],
        error_next: [shown.href, async () => submitForm(page, { ...BOB, password: 'wrong horse', error_next: target })],
        // Behind a callback a URL ends with it.
        'a provider': [
          `${path}#`.replace(/#.*#$/, match => match.slice(0, -1)),
          async () => page.goto(`${origin}/auth/dev/login?${new URLSearchParams({ next: target })}`)
        ]
      } as const
      for (const [way, [end, go]] of Object.entries(ways)) {
        const failure = await go().then(() => null, (error: Error) => error.message)
        if (failure === null && page.url() === new URL(end, origin).href && elsewhere.length === 0) continue
        astray.push([way, target.slice(0, 100), page.url().slice(0, 100), elsewhere.splice(0), failure])
        await page.close()
        page = await openForm()
      }
    }

    async function openForm (): Promise<Page> {
      const page = await context.newPage()
      await page.goto(`${origin}/sign-in`)
      return page
    }
  }))

  t.strictSame(astray, [])
  t.ok(idp.requests.length >= destinations.length, 'it went to the provider each time')
})

/** Fills in the form of a page and sends it. */
async function submitForm (page: Page, fields: Record<string, string>): Promise<void> {
  // By a script, for nobody can type what stands in hidden fields; as text, for the types of a page are not those of this project.
  const script = `
    const [form] = document.forms
    for (const [name, value] of Object.entries(${JSON.stringify(fields)})) form.elements[name].value = value
    form.requestSubmit()
  `
  await Promise.all([page.waitForNavigation(), page.evaluate(script)])
}
