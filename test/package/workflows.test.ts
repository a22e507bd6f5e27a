import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'

const FOLDER = join(import.meta.dirname, '../../.github/workflows')

for (const name of await readdir(FOLDER)) {
  t.test(`${name} runs no action that can change, and has no right that it does not need`, async t => {
    const workflow = await readFile(join(FOLDER, name), 'utf8')
    const actions = Array.from(workflow.matchAll(/uses: (.+)/g), ([, action = '']) => action)

    for (const action of actions) t.match(action, /^(?:\.\/\.github\/workflows\/\w+\.yml|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/)
    t.match(workflow, /^permissions:\n {2}contents: read\n(?! )/m)
    const checkouts = workflow.match(/uses: actions\/checkout@.+\n +with:\n +persist-credentials: false\n/g) ?? []
    t.equal(checkouts.length, actions.filter(action => action.startsWith('actions/checkout@')).length)
    t.equal(workflow.match(/runs-on:/g)?.length, workflow.match(/timeout-minutes:/g)?.length)
  })
}

t.test('one action has one version in all workflows', async t => {
  const workflows = await Promise.all((await readdir(FOLDER)).map(async name => readFile(join(FOLDER, name), 'utf8')))
  const uses = workflows.flatMap(workflow => Array.from(workflow.matchAll(/uses: ([\w-]+\/[\w-]+)\S*@(.+)/g)))
  const versions = new Set(uses.map(([, action, version]) => `${action} ${version}`))

  t.equal(versions.size, new Set(uses.map(([, action]) => action)).size, [...versions].join(', '))
})
