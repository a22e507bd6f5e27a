/** What hooks of the application throw on the plugin's routes. */
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin from '../../lib/index.js'
import { Pages } from '../../lib/pages.js'
import { SESSION_SECRET, localProvider } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider } from '../helpers/own-provider.js'

const SCRIPT = { accept: 'application/json' }

/** A request to each kind of route, as a script sends it. */
const ROUTES: Readonly<Record<string, (browser: Browser) => ReturnType<Browser['get']>>> = {
  'a form': browser => browser.post('/auth/local/login', { email: 'ada@example.com', password: 'x' }),
  'a page': browser => browser.get('/auth/pages/sign-in', SCRIPT),
  'a page behind a link': browser => browser.get('/auth/pages/confirm?token=x', SCRIPT),
  'the start of a sign-in': browser => browser.get('/auth/own/login', SCRIPT),
  'a callback': browser => browser.get('/auth/own/callback?code=x&state=y', SCRIPT),
  'the user': browser => browser.get('/auth/session', SCRIPT),
  'an unknown path': browser => browser.get('/auth/nowhere', SCRIPT)
}

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'onSend'] as const

interface Thrown {
  error: unknown
  hook?: typeof HOOKS[number]
}

async function start (t: Test, thrown: Thrown, lines: string[] = []): Promise<Browser> {
  const app: FastifyInstance = Fastify({ logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  for (const hook of HOOKS) {
    app.addHook(hook as 'onRequest', async () => { if (thrown.hook === hook) throw thrown.error })
  }
  await app.register(authPlugin, {
    baseUrl: 'https://app.example',
    session: { secret: SESSION_SECRET },
    providers: [new OwnProvider('own')],
    local: localProvider(),
    pages: new Pages({ name: 'Shop' }),
    loginPage: '/sign-in'
  })
  await app.ready()
  return new Browser(app)
}

const failing = (statusCode: number | undefined, message: string, code?: string): Error =>
  Object.assign(new Error(message), { statusCode, code })

t.test('attack 169: what a hook throws keeps its status, code and sentence; nothing inner is told', async t => {
  const inner = { statusCode: 500, code: 'internal_error', message: 'The request could not be completed; try again later.' }
  const cases: Array<[name: string, error: unknown, answer: object]> = [
    ['a refusal', failing(403, 'Only in the office.', 'NOT_HERE'), { statusCode: 403, code: 'NOT_HERE', message: 'Only in the office.' }],
    ['a refusal without a code', failing(403, 'Only in the office.'), { statusCode: 403, code: 'forbidden', message: 'Only in the office.' }],
    ['another status', failing(418, 'A teapot.'), { statusCode: 418, code: 'invalid_request', message: 'A teapot.' }],
    ['an overload', failing(503, 'queue of db-7 is full', 'UNDER_PRESSURE'), { ...inner, statusCode: 503, code: 'UNDER_PRESSURE' }],
    ['a mistake', new TypeError('inner is not a function'), inner],
    ['an error of the system', failing(undefined, 'connect ECONNREFUSED 10.0.0.7', 'ECONNREFUSED'), inner],
    ['a status that is none', failing(99, 'inner'), inner],
    ['a text', 'inner', inner]
  ]
  const thrown: Thrown = { error: null }
  const lines: string[] = []
  const browser = await start(t, thrown, lines)
  for (const [name, error, answer] of cases) {
    for (const hook of HOOKS) {
      Object.assign(thrown, { error, hook })
      for (const [route, request] of Object.entries(ROUTES)) {
        // It is answered in onRequest. In onSend, Fastify answers itself, and to a text not at all.
        if (hook !== 'onRequest' && (route === 'an unknown path' || (hook === 'onSend' && typeof error === 'string'))) continue
        lines.length = 0
        const response = await request(browser)
        const what = `${name}, ${hook}, ${route}`
        t.equal(response.statusCode, Reflect.get(answer, 'statusCode'), what)
        t.notMatch(response.body, /inner is|10\.0\.0|db-7|"inner"/, what)
        if (response.headers['content-type']?.toString().includes('json')) t.match(response.json(), answer, what)
        t.notMatch(lines.join(), /unavailable/, what)
      }
    }
  }
})

t.test('a browser is redirected with the code of the hook', async t => {
  const thrown: Thrown = { error: failing(403, 'Only in the office.', 'NOT_HERE'), hook: 'preHandler' }
  const browser = await start(t, thrown)
  const send = async () => browser.submit('/auth/local/login', { email: 'ada@example.com', password: 'x', error_next: '/sign-in' })
  t.equal((await send()).headers.location, '/sign-in?error=NOT_HERE')
  thrown.error = new TypeError('inner is not a function')
  t.equal((await send()).headers.location, '/sign-in?error=internal_error')
})
