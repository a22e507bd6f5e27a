import t, { type Test } from 'tap'
import { ExampleProcess, type Settings, settingsFor } from './example-process.js'

const EMAIL = 'ada@example.com'

t.test('pre-auth-link.ts answers a mistake with one sentence and exit code 1', async t => {
  const own = await settingsFor(t)
  const settings = { ...own, LOCAL_IDP_SECRET: 'a-secret-that-both-of-them-know.' }
  const mistakes: Array<[string[], Settings, string]> = [
    [[], {}, 'Usage: '],
    [[EMAIL, 'grace@example.com'], {}, 'Usage: '],
    [[EMAIL, '--hours', '1'], {}, 'Usage: '],
    [[EMAIL, '--minutes', '0'], {}, '--minutes must be a whole number from 1 to 60'],
    [[EMAIL, '--minutes', '61'], {}, 'it is "61"'],
    [[EMAIL, '--minutes', '1.5'], {}, 'it is "1.5"'],
    [[EMAIL], {}, `has the e-mail ${EMAIL}`],
    [[EMAIL], { BASE_URL: 'localhost:3000' }, 'BASE_URL must be the address of the application'],
    [[EMAIL], { LOCAL_IDP_SECRET: 'short' }, 'LOCAL_IDP_SECRET']
  ]
  await Promise.all(mistakes.map(async ([args, mistaken, sentence]) => {
    await answers(t, args, { ...settings, ...mistaken }, sentence)
  }))
  await answers(
    t,
    [EMAIL],
    { ...own, EXAMPLE_DB: '/nowhere/example.db' },
    'EXAMPLE_DB must name a file that can be written'
  )
})

/** Asserts that the program ends with this sentence. */
async function answers (t: Test, args: string[], settings: Settings, sentence: string): Promise<void> {
  const environment = { BASE_URL: `http://localhost:${settings.PORT}/`, ...settings }
  const tool = new ExampleProcess(t, ['pre-auth-link.ts', ...args], environment)
  t.equal(await tool.end(), 1)
  t.match(tool.output, sentence)
  t.match(tool.output, /^.*\n$/)
}
