import t from 'tap'
import type { Mail } from '../../lib/index.js'
import { ar, en, ja, mailTexts } from '../../lib/mails.js'
import { startChromium } from './chromium.js'
import { Visitor, barriersOn } from './visitor.js'

const ABOUT = { requestId: 'req-1', ip: '192.0.2.1', userAgent: 'Firefox/150.0 Windows', language: null }
const SHARED = { to: 'ada@example.com', userId: null, name: 'Ada Lovelace', about: ABOUT }
const TOKEN = `${'a'.repeat(300)}.${'b'.repeat(43)}`
const URL_OF_LINK = `https://app.example/auth/local/mail-login?token=${TOKEN}`
const SIGN_IN: Mail = { ...SHARED, kind: 'sign-in', url: URL_OF_LINK, token: TOKEN, code: '123456', expiresIn: 600, accountUrl: null }
const NOTICE: Mail = {
  ...SHARED, kind: 'new-browser', url: null, token: null, code: null, expiresIn: null, accountUrl: 'https://app.example/auth/pages/account'
}

t.test('mails have no barriers, light and dark, on a desk and on a phone, from right to left too, and without blanks', async t => {
  const page = await (await Visitor.with(await startChromium(), t)).open('about:blank')
  for (const [brand, texts] of [['#ffd400', en], ['#101828', ar], ['#101828', ja]] as const) {
    const textOf = mailTexts({
      name: 'Shop', brand, support: 'help@shop.example', address: 'Shop GmbH, Berlin', languages: [texts]
    })
    for (const mail of [SIGN_IN, NOTICE]) {
      await page.setContent(textOf(mail).html)
      t.strictSame(await barriersOn(page, { isMail: true }), [], `${mail.kind}, ${texts.language}`)
      const { x = 0, width = 0 } = await page.locator('.card p').first().boundingBox() ?? {}
      t.ok(x > 232 && width <= 496, 'a column in the middle')
      t.equal(await page.evaluate("getComputedStyle(document.querySelector('h1')).direction"), texts.direction)
      t.equal(await page.getByText(texts.kinds[mail.kind].text.slice(0, 20)).first().isVisible(), false, 'the text for lists is hidden')
    }
    await page.setContent(textOf(SIGN_IN).html)
    const button = page.getByRole('cell').or(page.locator('td')).filter({ has: page.getByRole('link', { name: texts.kinds['sign-in'].button }) }).last()
    t.equal((await button.boundingBox())?.height, 44)
  }
})
