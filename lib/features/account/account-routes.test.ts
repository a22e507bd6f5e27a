import t, { type Test } from 'tap'
import { AuthError, type AuthPluginOptions, SignInRefused } from '../../index.js'
import { Browser } from '../../../test/helpers/browser.js'
import { ADA, type MailApp, registerAt, startMailApp } from '../../../test/helpers/mail-app.js'

const ROUTES = {
  changePassword: ['POST /auth/local/change-password'],
  setPassword: ['POST /auth/local/set-password'],
  changeEmail: ['POST /auth/local/change-email', 'GET /auth/local/change-email/confirm', 'POST /auth/local/change-email/confirm'],
  deleteAccount: ['POST /auth/local/delete-account'],
  forgotPassword: ['POST /auth/local/forgot-password', 'GET /auth/local/reset-password', 'POST /auth/local/reset-password'],
  sessionsEnd: ['POST /auth/local/sessions/end']
}

for (const [name, routes] of Object.entries(ROUTES)) {
  t.test(`accountRoutes.${name}: false leaves out its routes, and no others`, async t => {
    const { app } = await startMailApp(t, {}, { accountRoutes: { [name]: false } })

    for (const [other, itsRoutes] of Object.entries(ROUTES)) {
      for (const route of itsRoutes) {
        const [method = '', url = ''] = route.split(' ')
        const { statusCode } = await app.inject({ method: method as 'GET', url, headers: { accept: 'application/json' } })
        t.equal(statusCode === 404, other === name, `${route}: ${statusCode}`)
      }
    }
    t.strictSame(routes, ROUTES[name as keyof typeof ROUTES])
  })
}

t.test('true and undefined leave a route as it is', async t => {
  const { app } = await startMailApp(t, {}, { accountRoutes: { deleteAccount: undefined, changeEmail: true } })

  for (const url of ['/auth/local/delete-account', '/auth/local/change-email']) {
    t.not((await app.inject({ method: 'POST', url })).statusCode, 404)
  }
})

t.test('the hook onDelete', async t => {
  const start = async (t: Test, onDelete: AuthPluginOptions['onDelete']): Promise<MailApp & { userId: string }> => {
    const started = await startMailApp(t, { onDelete })
    await registerAt(started)
    const user = await started.app.auth.findUser({ email: ADA.email })
    return { ...started, userId: String(user?.userId) }
  }
  const leave = (browser: Browser, form: object = {}) => browser.post('/auth/local/delete-account', form)

  t.test('it is awaited after the user authenticated and before the account is gone', async t => {
    const seen: unknown[] = []
    const { app, browser, userId } = await start(t, async ({ request, userId }) => {
      seen.push([request?.url, userId, await app.auth.findUser({ userId }) !== null])
    })

    t.equal((await leave(browser, { current: 'wrong horse' })).json().code, 'invalid')
    t.strictSame(seen, [], 'not for a wrong password')
    t.equal((await leave(browser, { current: ADA.password })).statusCode, 204)

    t.strictSame(seen, [['/auth/local/delete-account', userId, true]])
    t.equal(await app.auth.findUser({ userId }), null)
  })

  t.test('it refuses with its code, and the account and the session stay', async t => {
    const { app, browser, userId } = await start(t, () => { throw new SignInRefused('open_orders') })

    const refused = await leave(browser)

    t.strictSame([refused.statusCode, refused.json().code], [403, 'open_orders'])
    t.ok(await app.auth.findUser({ userId }))
    t.equal((await browser.get('/private')).statusCode, 200)
  })

  t.test('any other error is an internal error, and the next attempt may succeed', async t => {
    let attempts = 0
    const { app, browser, userId } = await start(t, () => { if (++attempts === 1) throw new Error('the table of orders is locked') })

    const failed = await leave(browser)
    t.strictSame([failed.statusCode, failed.json().code], [500, 'internal_error'])
    t.notMatch(failed.body, 'orders')
    t.equal((await leave(browser)).statusCode, 204)

    t.equal(await app.auth.findUser({ userId }), null)
  })

  t.test('app.auth.deleteUser does not call it', async t => {
    const { app, userId } = await start(t, () => { throw new AuthError('forbidden') })

    await app.auth.deleteUser(userId)

    t.equal(await app.auth.findUser({ userId }), null)
  })
})
