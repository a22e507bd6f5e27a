import t from 'tap'
import { Browser } from '../../../test/helpers/browser.js'
import { localProvider, startApp } from '../../../test/helpers/app.js'
import { OwnProvider } from '../../../test/helpers/own-provider.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }

t.test('attack 176: next to a login route of a provider arrives after a form, by a page that navigates', async t => {
  const app = await startApp(t, {
    baseUrl: 'https://app.example/shop', providers: [new OwnProvider('a')], local: localProvider(), trustedOrigins: ['https://front.example']
  })
  const browser = new Browser(app)
  await browser.post('/auth/local/register', ADA)
  const next = '/shop/auth/a/login?next=%2Fcart'

  for (const path of ['/auth/local/login', '/auth/local/revoke']) {
    const page = await browser.submit(path, { ...ADA, next })
    t.match(page, { statusCode: 200, headers: { 'content-type': /html/, 'content-security-policy': /frame-ancestors 'none'/ } }, path)
    t.match(page.body, `<meta http-equiv="refresh" content="0; url=${next}">`, 'without scripts')
    t.match(page.body, `href="${next}"`, 'and by hand')
  }
  t.equal((await browser.post('/auth/local/login', { ...ADA, next })).statusCode, 200, 'a script goes on by itself')
  for (const other of ['/shop/auth/b/login', '/shop/auth/a/login/x', '/cart?to=/shop/auth/a/login', 'https://front.example/shop/auth/a/login']) {
    const { statusCode, headers } = await browser.submit('/auth/local/login', { ...ADA, next: other })
    t.strictSame([statusCode, headers.location], [303, other])
  }
  t.equal((await browser.get('/auth/a/login?next=/shop/cart')).statusCode, 302)
})
