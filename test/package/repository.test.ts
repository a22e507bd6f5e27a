import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '../..')
const { scripts }: { scripts: Record<string, string> } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
const CHECK = 'test/package/repository.mjs'

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
