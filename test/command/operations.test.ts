/** Each command of docs/operations.md, in its order, on one database beside a running application. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import authPlugin, { SqlAuthStore } from '../../lib/index.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from '../helpers/app.js'
import { COMMAND, type Ended, ended } from '../helpers/command.js'
import { freePort } from '../helpers/loopback.js'
import { Markdown } from '../helpers/markdown.js'

const EMAIL = 'ada@example.com'

t.test('the commands of the page on operations do what it says', async t => {
  const folder = t.testdir({ dist: { 'send-mail.ts': 'export function sendMail () {}' } })
  const file = join(folder, 'users.db')
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(authPlugin, {
    baseUrl,
    local: localProvider({ sendMail () {}, signInByMail: true }),
    store: new SqlAuthStore(file),
    session: { secret: SESSION_SECRET }
  })
  await app.listen({ port, host: '127.0.0.1' })
  const page = await Markdown.read('docs/operations.md')
  const [options = ''] = page.blocks('ts')
  await writeFile(join(folder, 'dist/auth-options.ts'), options.replace('https://app.example', baseUrl))
  const lines = page.blocks('sh').flatMap(code => code.trimEnd().split('\n'))
  const run = async (line: string): Promise<Ended> => {
    const script = `cd ${folder}; ${line.replace('npx fastify-svc-auth', '"$@"').replace('https://app.example', baseUrl)}`
    return ended(['bash', '-c', script, 'bash', ...COMMAND], { LOCAL_AUTH_DB: file, LOCAL_IDP_SECRET: LOCAL_SECRET })
  }
  const user = async () => app.auth.findUser({ email: EMAIL })
  const after: Record<string, (printed: string) => Promise<void>> = {
    create: async printed => {
      t.match(printed, `${baseUrl}/auth/local/reset-password?token=`)
      t.match(await user(), { emailVerified: true, claims: { role: 'admin' } })
    },
    grant: async () => { t.match(await user(), { claims: { role: 'admin', teams: ['a', 'b'] } }) },
    withdraw: async () => { t.strictSame((await user())?.claims, { role: 'admin' }) },
    link: async printed => { t.match(printed, `${baseUrl}/auth/local/reset-password?token=`) },
    'reset-factors': async () => { t.match(await user(), { generation: 1 }) },
    'api-key': async printed => { t.match(printed, /"key": "shop_|"name": "Nightly"/) },
    'sign-out': async () => { t.match(await user(), { generation: 2 }) },
    block: async () => { t.match(await user(), { blocked: { reason: 'session stolen' } }) },
    unblock: async () => { t.equal((await user())?.blocked, undefined) },
    mails: async printed => {
      t.match(printed, '"index": "mails/index.html"')
      t.ok(existsSync(join(folder, 'mails/reset-password.fr.txt')))
    },
    export: async () => { t.match(JSON.parse(await readFile(join(folder, 'ada.json'), 'utf8')), { email: EMAIL }) },
    delete: async () => { t.equal(await user(), null) }
  }
  for (const line of lines) {
    const { code, stdout, stderr } = await run(line)
    t.equal(code, 0, `${line}: ${stderr}`)
    const [,, name = ''] = line.split(' ')
    await after[name]?.(stdout)
  }
  t.ok(existsSync(file))
  t.strictSame(Object.keys(after).filter(name => !lines.some(line => line.includes(` ${name} `))), [], 'the page has them all')
})
