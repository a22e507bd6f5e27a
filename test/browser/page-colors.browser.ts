/** What the pages derive of the brand of an application, in Chromium: for each brand it can be read. */
import t from 'tap'
import { Pages } from '../../lib/pages.js'
import { some } from '../helpers/thorough.js'
import { startChromium } from './chromium.js'
import { startShop } from './page-steps.js'
import { Visitor } from './visitor.js'

const chromium = await startChromium()

/** Of each channel: 5,832 brands in all. */
const STEPS = some(Array.from({ length: 18 }, (_, index) => Math.round(index * 255 / 17)), 4, 1)

/** Paints what is derived of each brand, and finds the worst contrast of each pair (WCAG 2.2, 1.4.3). */
const WORST = `(() => {
  const steps = ${JSON.stringify(STEPS)}
  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true })
  const painted = (...colors) => {
    for (const color of colors) {
      context.fillStyle = color
      context.fillRect(0, 0, 1, 1)
    }
    return context.getImageData(0, 0, 1, 1).data
  }
  const luminance = data => [0.2126, 0.7152, 0.0722].reduce((sum, part, index) => {
    const channel = data[index] / 255
    return sum + part * (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4)
  }, 0)
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a)
    return (light + 0.05) / (dark + 0.05)
  }
  const button = document.querySelector('.primary')
  const [link, card] = [document.querySelector('.links a'), document.querySelector('main')]
  const back = painted(getComputedStyle(document.body).backgroundColor)
  const surface = painted(getComputedStyle(card).backgroundColor)
  const worst = { button: 21, hovered: 21, link: 21, linkOnBack: 21 }
  const note = (name, one, other) => { worst[name] = Math.min(worst[name], contrast(one, other)) }
  for (const r of steps) for (const g of steps) for (const b of steps) {
    document.documentElement.style.setProperty('--auth-brand', 'rgb(' + [r, g, b] + ')')
    for (const [name, mixed] of [['button', 'var(--auth-brand)'], ['hovered', 'color-mix(in srgb, var(--auth-brand), var(--auth-text) 12%)']]) {
      button.style.setProperty('--fill', mixed)
      const { color, backgroundColor } = getComputedStyle(button)
      note(name, painted(color), painted(backgroundColor))
    }
    const ink = painted(getComputedStyle(link).color)
    note('link', ink, surface)
    note('linkOnBack', ink, back)
  }
  return worst
})()`

t.test('text on the brand, and in its ink, has a contrast of 4.5 for each brand, light and dark', async t => {
  const { url } = await startShop(t, { pages: new Pages({ name: 'Shop' }) })
  const page = await (await Visitor.with(chromium, t)).open(`${url}/auth/pages/sign-in`)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const worst: Record<string, number> = await page.evaluate(WORST)
    for (const [name, contrast] of Object.entries(worst)) t.ok(contrast >= 4.5, `${colorScheme}: ${name} ${contrast.toFixed(2)}`)
  }
})

t.test('a rule for all buttons, fields and links changes no look of the pages', async t => {
  let style = ''
  const { url } = await startShop(t, { pages: new Pages({ name: 'Shop', stylesheet: '/own.css' }) }, app => {
    app.get('/own.css', async (_request, reply) => reply.type('text/css').send(style))
  })
  const page = await (await Visitor.with(chromium, t)).open(`${url}/auth/pages/sign-in`)
  const looks = async (): Promise<unknown> => {
    await page.reload()
    return page.evaluate(`[...document.querySelectorAll('.button, .input, .link')].map(element => {
      const { color, backgroundColor, borderTopColor, borderTopWidth, paddingTop, fontSize, marginTop, inlineSize } = getComputedStyle(element)
      return [element.className, color, backgroundColor, borderTopColor, borderTopWidth, paddingTop, fontSize, marginTop, inlineSize]
        .slice(0, element.matches('.link') ? 2 : 9)
    })`)
  }
  const before = await looks()
  style = 'button, input, a { color: red; background: red; border: 9px solid red; padding: 9px; font-size: 99px; margin: 9px; inline-size: 9px }'

  t.strictSame(await looks(), before)
})
