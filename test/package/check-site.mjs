/** Follows each link of the site that typedoc has made, anchors included: `npm run docs` ends with it. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const SITE = fileURLToPath(new URL('../../site', import.meta.url))

const pages = new Map(readdirSync(SITE, { recursive: true })
  .filter(path => path.endsWith('.html'))
  .map(path => [join(SITE, path), readFileSync(join(SITE, path), 'utf8')]))
const anchors = new Map([...pages].map(([path, html]) => [path, new Set(Array.from(html.matchAll(/ id="([^"]*)"/g), ([, id]) => id))]))

const broken = [...pages].flatMap(([path, html]) => {
  const targets = new Set(Array.from(html.matchAll(/<(?:a|img|script|link)\b[^>]* (?:href|src)="([^"]*)"/g), ([, target]) => target))
  return [...targets].filter(target => !leadsSomewhere(path, target)).map(target => `${relative(SITE, path)}: ${target}`)
})

assert(pages.size > 50, `${pages.size} pages`)
assert.deepEqual(broken, [])

function leadsSomewhere (page, target) {
  if (/^[a-z]+:/.test(target)) return true
  const [file, anchor = ''] = decodeURIComponent(target).split('#')
  const place = file === '' ? page : join(dirname(page), file)
  const found = statSync(place, { throwIfNoEntry: false })
  const path = found?.isDirectory() === true ? join(place, 'index.html') : place
  return found !== undefined && (anchor === '' || anchors.get(path)?.has(anchor) === true)
}
