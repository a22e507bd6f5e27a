import fastifyCookie, { type CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyInstance } from 'fastify'
import { OptionsError } from '../errors.js'

/** The characters in cookies of the plugin: base64, base64url, a dot, a prefix. */
const VALUE = 's:AZaz09-_.+/='

/**
 * Registers @fastify/cookie, unless the application has it.
 *
 * @throws OptionsError where the `parseOptions` of the application would change other cookies
 */
export async function registerCookies (app: FastifyInstance): Promise<void> {
  if (!app.hasPlugin('@fastify/cookie')) {
    await app.register(fastifyCookie)
    return
  }
  const { cookies, options: { signed, maxAge, encode } } = noted(app)
  const isRead = app.parseCookie(app.serializeCookie('cookie', VALUE, { ...(encode && { encode }) })).cookie === VALUE
  const [odd] = Object.entries({ decode: !isRead, signed, maxAge }).find(([, isOdd]) => isOdd) ?? []
  if (odd !== undefined) {
    throw new OptionsError(`@fastify/cookie is registered with parseOptions.${odd}, which would change session ` +
      'cookies too; leave it out, and use it where you set or read your own cookies')
  }
  // With another `hook` than onRequest it would do so after @fastify/session needs it.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.cookies === null) {
      request.cookies = app.parseCookie(request.headers.cookie ?? '')
      Reflect.set(reply, cookies, new Map())
    }
    done()
  })
}

/**
 * Returns where @fastify/cookie notes the cookies that an answer sets, and with which options: the
 * `parseOptions` of the application are the defaults. An answer that is never sent tells.
 */
function noted (app: FastifyInstance): { cookies: symbol, options: CookieSerializeOptions } {
  const ofSymbols = Object.getOwnPropertySymbols(app).map((symbol): unknown => Reflect.get(app, symbol))
  const { prototype } = Object(ofSymbols.find(value => Object(value).prototype?.setCookie !== undefined))
  const reply = Object.create(prototype, { server: { value: app }, request: { value: { raw: { headers: {} } } } })
  reply.setCookie('cookie', VALUE)
  const cookies = Object.getOwnPropertySymbols(reply).find(symbol => reply[symbol] instanceof Map)
  if (cookies === undefined) throw new Error('this version of @fastify/cookie is not supported; install ^11.1.3')
  return { cookies, options: reply[cookies].values().next().value.opts }
}
