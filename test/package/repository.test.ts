import { spawnSync } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Markdown } from '../helpers/markdown.js'

const ROOT = join(import.meta.dirname, '../..')
const { scripts }: { scripts: Record<string, string> } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
const CHECK = 'test/package/repository.mjs'
const LINKS = 'test/package/absolute-links.mjs'

t.test('nothing is published without a repository, where the links of README lead on npm', async t => {
  const folder = t.testdir()
  const check = async (settings: object) => {
    await writeFile(join(folder, 'package.json'), JSON.stringify(settings))
    return spawnSync(process.execPath, [join(ROOT, CHECK)], { cwd: folder, encoding: 'utf8' })
  }

  t.equal(scripts.prepublishOnly, `node ${CHECK}`)
  t.match(await check({}), { status: 1, stderr: /npm pkg set repository\.type=git/ })
  t.match(await check({ repository: { type: 'git', url: 'example' } }), { status: 1 })
  t.match(await check({ repository: { type: 'git', url: 'git+https://git.example/a/b.git' } }), { status: 0, stderr: '' })
})

t.test('the workflow that publishes names its own repository, as a URL that the check takes', async t => {
  const workflow = await readFile(join(ROOT, '.github/workflows/publish.yml'), 'utf8')

  const url = /repository\.url=(\S+?)"/.exec(workflow)?.[1] ?? ''

  t.equal(url.replace('$REPOSITORY', 'https://git.example/a/b'), 'git+https://git.example/a/b.git')
  t.ok(workflow.indexOf('npm pkg set') < workflow.indexOf('npm publish --'))
})

t.test('the links of the published pages lead to the files of their version', async t => {
  const folder = t.testdir()
  const settings = { version: '1.2.3', repository: { type: 'git', url: 'git+https://git.example/a/b.git' } }
  await writeFile(join(folder, 'package.json'), JSON.stringify(settings))
  const pages = ['README.md', 'CHANGELOG.md']
  for (const page of pages) await copyFile(join(ROOT, page), join(folder, page))

  t.match(spawnSync(process.execPath, [join(ROOT, LINKS)], { cwd: folder, encoding: 'utf8' }), { status: 0, stderr: '' })
  for (const page of pages) {
    const [before, after] = [await Markdown.read(page), new Markdown(await readFile(join(folder, page), 'utf8'))]
    const kept = (target: string): boolean => /^(?:https?:|#)/.test(target)
    const path = (target: string): string => target.replace(/^https:\/\/git\.example\/a\/b\/(?:blob|raw)\/v1\.2\.3\//, '')
    t.ok(after.targets().every(kept))
    t.strictSame(after.targets().map(path), before.targets())
  }
  t.match(await readFile(join(folder, 'README.md'), 'utf8'), '"https://git.example/a/b/raw/v1.2.3/examples/demo/screenshots/')
  t.match(await readFile(join(ROOT, '.github/workflows/publish.yml'), 'utf8'), LINKS)
})
