import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { Documentation, Markdown } from './helpers/markdown.js'

const ROOT = join(import.meta.dirname, '..')
const { pages } = await Documentation.read()
const DOCUMENTS = [...pages.keys(), 'SECURITY.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'bench/README.md']

for (const path of DOCUMENTS) {
  t.test(`${path}: links lead to files and headings that there are`, async t => {
    const document = await Markdown.read(path)
    for (const target of document.targets().filter(target => !/^https?:/.test(target))) {
      const [file = '', anchor] = target.split('#')
      const place = file === '' ? path : join(dirname(path), file)
      t.ok(existsSync(join(ROOT, place)), target)
      if (anchor !== undefined) t.ok((await Markdown.read(place)).anchors().includes(anchor), target)
    }
  })

  t.test(`${path}: scripts, examples and tests that it names are there`, async t => {
    const { text } = await Markdown.read(path)
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    for (const [, script = ''] of text.matchAll(/\bnpm (?:run )?((?<=run )[\w:-]+|start|test)\b/g)) t.ok(Object.hasOwn(scripts, script), `npm run ${script}`)
    for (const [file] of text.matchAll(/(?<![\w/.-])(?:examples|bench|lib|test|drizzle)\/[\w./-]*\w/g)) t.ok(existsSync(join(ROOT, file)), file)
  })
}

t.test('links that lead nowhere are found', async t => {
  const { text } = await Markdown.read('README.md')
  const document = new Markdown(`${text}\n[gone](examples/gone.ts) [there](#compared-with) <img src="gone.png"> \`[code](not-a-link)\`\n`)
  const targets = document.targets()

  t.ok(['examples/gone.ts', '#compared-with', 'gone.png'].every(target => targets.includes(target)))
  t.notOk(targets.includes('not-a-link'))
  t.ok(document.anchors().includes('compared-with'))
  t.notOk(document.anchors().includes('gone'))
})
