import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ADA, startSite } from '../oauth-clients/site.js'
import { ExampleProcess } from './example-process.js'
import { Visitor } from './visitor.js'

const EXAMPLE = join(import.meta.dirname, '../../examples/mcp')

const { url } = await startSite(t)

t.test('a command line signs in by a code, and lists the notes of the user who has typed it', async t => {
  const ada = new Visitor()
  await ada.open(url)
  await ada.register(ADA)
  await ada.open(url)
  await ada.press('Add', { text: 'Buy <milk>' })
  t.match(ada.page.text, '<li>Buy &#60;milk&#62;</li>')

  const cli = new ExampleProcess(t, ['mcp/cli.ts', url], {})
  await cli.says('and enter ')
  const [, address = '', code = ''] = /Open (\S+) and enter (\S+)/.exec(cli.output) ?? []
  await ada.open(address)
  await ada.press('Continue', { user_code: code.toLowerCase() })
  t.match(ada.page.text, 'Command line')
  t.match(ada.page.text, '<li>Read your notes</li>')
  t.notMatch(ada.page.text, 'Add notes')
  await ada.press('Allow', { decision: 'allow' })
  t.match(ada.page.text, 'The device is connected.')

  t.equal(await cli.end(), 0)
  t.match(cli.output, 'Buy <milk>\n')
  await ada.open(`${url}/auth/pages/account`)
  t.match(ada.page.text, 'Command line')
})

t.test('a refused command line says so', async t => {
  const ada = new Visitor()
  await ada.open(url)
  await ada.press('Sign in', ADA)
  const cli = new ExampleProcess(t, ['mcp/cli.ts', url], {})
  await cli.says('and enter ')
  const [, address = '', code = ''] = /Open (\S+) and enter (\S+)/.exec(cli.output) ?? []
  await ada.open(address)
  await ada.press('Continue', { user_code: code })
  await ada.press('Cancel', { decision: 'deny' })

  t.not(await cli.end(), 0)
  t.match(cli.output, 'The user has refused.')
})

t.test('the server has at most 120 lines, and the command line 40', async t => {
  const linesOf = async (name: string) => (await readFile(join(EXAMPLE, name), 'utf8')).trimEnd().split('\n').length

  t.ok(await linesOf('server.ts') <= 120)
  t.ok(await linesOf('cli.ts') <= 40)
})
