/** What users do on the pages of the plugin. */
import type { Page } from 'playwright-core'

/** Fills in the form with this button, by the names of its fields, and sends it. */
export async function send (page: Page, button: string, fields: Record<string, string> = {}): Promise<void> {
  const form = page.locator('form', { has: page.getByRole('button', { name: button, exact: true }) }).first()
  for (const [name, value] of Object.entries(fields)) await form.locator(`[name="${name}"]`).fill(value)
  await form.getByRole('button', { name: button, exact: true }).click()
}

export async function titleOf (page: Page): Promise<string> {
  return page.locator('h1').innerText()
}

/** The widths at which a page is wider than the window: at 200 % a window has half as many pixels. */
export async function widthsThatScroll (page: Page): Promise<number[]> {
  const scrolling: number[] = []
  for (const width of [1024, 512, 390, 195]) {
    await page.setViewportSize({ width, height: 800 })
    const isWider: boolean = await page.evaluate(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    )
    if (isWider) scrolling.push(width)
  }
  return scrolling
}
