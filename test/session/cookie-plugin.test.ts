import fastifyCookie, { type FastifyCookieOptions } from '@fastify/cookie'
import Fastify, { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import authPlugin, { type AuthPluginOptions, MemoryAuthStore } from '../../lib/index.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { SESSION_SECRET, localProvider, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { DATA_SECRET, enrolAt, nextCode } from '../helpers/factor-app.js'
import { ADA } from '../helpers/mail-app.js'

const WORKS: Record<string, object> = {
  'no options': {},
  'hook: preParsing': { hook: 'preParsing' },
  'hook: preValidation': { hook: 'preValidation' },
  'hook: preHandler': { hook: 'preHandler' },
  'hook: false': { hook: false },
  'a secret': { secret: 'a secret of the application' },
  'a decoder that leaves values as they are': { parseOptions: { decode: (text: string) => text } },
  'an encoder and its decoder': { parseOptions: { encode: base64, decode: (text: string) => Buffer.from(text, 'base64').toString() } },
  'other defaults of cookies': { hook: false, parseOptions: { path: '/shop', httpOnly: false, sameSite: 'none', secure: true, signed: false } }
}

for (const [what, cookies] of Object.entries(WORKS)) {
  t.test(`@fastify/cookie of the application with ${what}: users sign in and out, and a trusted browser is not asked again`, async t => {
    const app = await start(t, cookies)
    const browser = new Browser(app)
    t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
    const { secret } = await enrolAt(t, browser)
    const userId = await userIdIn(browser)
    t.equal((await browser.post('/auth/logout')).statusCode, 204)
    t.equal(await userIdIn(browser), null)

    t.equal((await browser.post('/auth/local/login', ADA)).json().code, 'second_factor_required')
    const trusted = await browser.post('/auth/local/second-factor', { code: nextCode(t, secret), trust: true })
    t.match(trusted.cookies, [{ httpOnly: true, path: '/' }, { httpOnly: true, path: '/' }])
    t.equal(await userIdIn(browser), userId)
    await browser.post('/auth/logout')

    t.equal((await browser.post('/auth/local/login', ADA)).statusCode, 200)
    t.equal(await userIdIn(browser), userId)
    t.equal((await browser.get('/own')).json().seen, undefined)
    t.equal((await browser.get('/own')).json().seen, 'a value')
    t.equal(await userIdIn(browser), userId)
  })
}

t.test('parseOptions that would change the cookies of the plugin are refused by name', async t => {
  const refused: Record<string, object> = {
    decode: { decode: () => 'something else' },
    signed: { signed: true },
    maxAge: { maxAge: 60 }
  }
  for (const [option, parseOptions] of Object.entries(refused)) {
    await t.rejects(start(t, { secret: 'a secret of the application', parseOptions }), {
      name: 'OptionsError',
      message: `@fastify/cookie is registered with parseOptions.${option}, which would change session cookies too; ` +
        'leave it out, and use it where you set or read your own cookies'
    })
  }
  await t.rejects(start(t, { parseOptions: { encode: base64 } }), { message: /parseOptions\.decode/ }, 'nothing decodes it')
})

t.test('another plugin that has the name of @fastify/cookie is refused', async t => {
  const app = Fastify()
  await app.register(fp(async app => {
    app.decorateReply('setCookie', function () { return this })
  }, { name: '@fastify/cookie' }))

  await t.rejects(async () => app.register(authPlugin, { session: { secret: SESSION_SECRET } }), {
    message: 'this version of @fastify/cookie is not supported; install ^11.1.3'
  })
})

function base64 (text: string): string {
  return Buffer.from(text).toString('base64')
}

async function start (t: Test, cookies: FastifyCookieOptions, options: AuthPluginOptions = {}): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(fastifyCookie, cookies)
  await app.register(authPlugin, {
    session: { secret: SESSION_SECRET },
    store: new MemoryAuthStore(),
    local: localProvider(),
    rateLimit: false,
    dataSecret: DATA_SECRET,
    secondFactor: new SecondFactor({ issuer: 'Shop', trustedBrowser: { days: 30 } }),
    ...options
  })
  app.get('/me', async request => ({ principal: request.principal }))
  app.get('/own', async (request, reply) => {
    const { own } = request.cookies
    reply.setCookie('own', 'a value', { path: '/' })
    return { seen: own }
  })
  await app.ready()
  return app
}
