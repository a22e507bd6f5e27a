import t from 'tap'
import { settingsFor, startExample } from '../examples/example-process.js'
import { startChromium } from './chromium.js'
import { Visitor } from './visitor.js'

t.test('a visitor registers and gets a token on the page that documents the routes', async t => {
  const settings = await settingsFor(t)
  await startExample(t, settings)
  const visitor = await Visitor.with(await startChromium(), t)
  const page = await visitor.open(`http://localhost:${settings.PORT}/docs`)
  /** Tries a route out; the status and what stands below it. */
  const tryOut = async (path: string, body?: object): Promise<string> => {
    const route = page.locator('.opblock', { has: page.getByRole('link', { name: path }) })
    await route.getByRole('link', { name: path }).click()
    await route.getByRole('button', { name: 'Try it out' }).click()
    if (body !== undefined) {
      await route.locator('.opblock-section-request-body select').first().selectOption('application/json')
      await route.locator('textarea').fill(JSON.stringify(body))
    }
    await route.getByRole('button', { name: 'Execute' }).click()
    return route.locator('.live-responses-table tbody').innerText()
  }

  t.match(await tryOut('/auth/local/register', { email: 'ada@example.com', password: 'correct horse' }), /^201[^]*"provider": "local"/)
  t.match(await tryOut('/auth/local/token'), /^200[^]*"token_type": "Bearer"/)
  t.strictSame(visitor.complaints, [])
})
