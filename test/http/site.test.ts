import t from 'tap'
import { startApp } from '../helpers/app.js'

const CHANGING = ['POST', 'PUT', 'PATCH', 'DELETE'] as const
const READING = ['GET', 'HEAD', 'OPTIONS'] as const

t.test('attack 38: a route of the application refuses pages of other origins, sibling subdomains too', async t => {
  const app = await startApp(t, { baseUrl: 'https://app.example', trustedOrigins: ['https://admin.app.example'] }, {}, app => {
    app.route({ method: [...CHANGING, ...READING], url: '/form', onRequest: app.auth.refuseCrossOrigin, handler: async () => 'done' })
    app.post('/open', async () => 'done')
  })
  const foreign = [
    { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' },
    { origin: 'https://www.app.example' }, { origin: 'http://app.example' }, { origin: 'null' },
    { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }, { origin: 'https://app.example, https://evil.example' }
  ]
  const own = [
    {},
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://app.example' },
    { origin: 'https://admin.app.example', 'sec-fetch-site': 'same-site' }
  ]

  for (const method of CHANGING) {
    for (const headers of foreign) {
      const response = await app.inject({ method, url: '/form', headers })
      t.equal(response.statusCode, 403, `${method} ${JSON.stringify(headers)}`)
      t.match(response.json(), { code: 'cross_origin' })
    }
    for (const headers of own) t.equal((await app.inject({ method, url: '/form', headers })).statusCode, 200, `${method} ${JSON.stringify(headers)}`)
  }
  for (const method of READING) {
    for (const headers of [...foreign, ...own]) t.equal((await app.inject({ method, url: '/form', headers })).statusCode, 200, `${method} changes nothing`)
  }
  t.equal((await app.inject({ method: 'POST', url: '/open', headers: { 'sec-fetch-site': 'cross-site' } })).statusCode, 200, 'other routes are left alone')
})
