/** The processes of the example: how each of them starts, ends and refuses to start. */
import t from 'tap'
import { ExampleProcess, free, occupy, portOf, settingsFor, startExample } from './example-process.js'
import { Visitor } from './visitor.js'

t.test('grant.ts answers a mistake with one sentence and exit code 1', async t => {
  const settings = await settingsFor(t)
  const mistakes: Array<[string[], string]> = [
    [[], 'Usage: '],
    [['ada@example.com'], 'Usage: '],
    [['ada@example.com', 'admin'], 'Usage: '],
    [['nobody@example.com', 'role=admin'], 'has the e-mail nobody@example.com']
  ]
  await Promise.all(mistakes.map(async ([args, sentence]) => {
    const grant = new ExampleProcess(t, ['grant.ts', ...args], settings)
    t.equal(await grant.end(), 1)
    t.match(grant.output, sentence)
    t.match(grant.output, /^.*\n$/)
  }))
})

t.test('in production, with its secrets set, there is no development provider', async t => {
  const settings = { ...await settingsFor(t), NODE_ENV: 'production', SVC_SESSION_SECRET: 's'.repeat(32), LOCAL_IDP_SECRET: 'l'.repeat(32) }
  const url = `http://localhost:${settings.PORT}`
  const example = await startExample(t, settings)

  const [warning = '', ...rest] = example.output.split('\n')
  t.match(JSON.parse(warning), { level: 40, msg: /^Sessions are kept in the memory of this process/ }, 'which is fit for one process that is never restarted')
  t.strictSame(rest, [`Ready: ${url}`, ''])
  t.notMatch((await new Visitor().open(`${url}/login`)).text, '/auth/dev/')
  t.equal((await new Visitor().open(`${url}/auth/dev/login`)).status, 404)
  await t.rejects(fetch(`http://localhost:${settings.DEV_PROVIDER_PORT}/.well-known/openid-configuration`))
})

t.test('what keeps the example from starting is one sentence that says what to set', async t => {
  const settings = await settingsFor(t)
  const other = await occupy()
  t.teardown(() => free(other))
  const taken = portOf(other)
  const mistakes: Array<[Record<string, string>, string]> = [
    [{ PORT: taken }, `Port ${taken} is in use; set PORT to a free one`],
    [{ DEV_PROVIDER_PORT: taken }, `Port ${taken} is in use; set DEV_PROVIDER_PORT to a free one`],
    [{ PORT: 'http' }, 'PORT must be a port number'],
    [{ SVC_SESSION_SECRET: 'short' }, 'set SVC_SESSION_SECRET'],
    [{ LOCAL_AUTH_DB: 'postgres://app:pass/word@localhost/app' }, 'target must be a whole postgres: URL'],
    [{ EXAMPLE_DB: '/nowhere/example.db' }, 'EXAMPLE_DB must name a file that can be written'],
    [{ GOOGLE_CLIENT_ID: 'x' }, 'GOOGLE_CLIENT_SECRET is not set, but GOOGLE_CLIENT_ID is']
  ]
  for (const [mistake, sentence] of mistakes) {
    const example = new ExampleProcess(t, ['demo/server.ts'], { ...settings, ...mistake })
    t.equal(await example.end(), 1)
    t.match(example.output, sentence)
    t.notMatch(example.output, /^ +at |pass\/word/m, 'no stack, no secret')
  }
})

t.test('SIGTERM ends the example in order', async t => {
  const example = await startExample(t, await settingsFor(t))

  await example.kill('SIGTERM')
  t.equal(await example.end(), 0)
})
