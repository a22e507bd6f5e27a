/** A workspace may install the package twice, and an application use parts of both. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type * as main from '../lib/index.js'
import type * as pagesModule from '../lib/pages.js'
import type * as passkeysModule from '../lib/passkeys.js'
import type * as secondFactorModule from '../lib/second-factor.js'
import { AuthError, LocalIdentityProvider, OptionsError, SignInRefused } from '../lib/index.js'
import { VERSION } from '../lib/base/values.js'
import { Pages } from '../lib/pages.js'
import { SESSION_SECRET, startApp } from './helpers/app.js'
import { Browser } from './helpers/browser.js'

const ADA = { email: 'ada@example.com', password: 'correct horse' }
const SECRET = 'a secret of tokens that has at least 32 characters'

/** Loads another copy of the package. */
async function otherCopy (t: Test, version = VERSION) {
  const folder = join(t.testdir(), 'lib')
  cpSync('lib', folder, { recursive: true })
  const file = join(folder, 'base/values.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace(`'${VERSION}'`, `'${version}'`))
  const load = async <Module>(name: string): Promise<Module> => import(pathToFileURL(join(folder, name)).href)
  return {
    ...await load<typeof main>('index.ts'),
    ...await load<typeof pagesModule>('pages.ts'),
    ...await load<typeof passkeysModule>('passkeys.ts'),
    ...await load<typeof secondFactorModule>('second-factor.ts')
  }
}

t.test('the package knows its version', async t => {
  t.equal(VERSION, JSON.parse(readFileSync('package.json', 'utf8')).version)
})

t.test('what another copy of this version has made works', async t => {
  const other = await otherCopy(t)
  t.not(other.AuthError, AuthError, 'it is another one')
  let refusal: Error | null = null
  const app = await startApp(t, {
    session: { secret: SESSION_SECRET },
    local: new other.LocalIdentityProvider({ secret: SECRET }),
    pages: new other.Pages({ name: 'Shop' }),
    store: new other.SqlAuthStore(':memory:'),
    onSignIn () { if (refusal !== null) throw refusal }
  })
  const browser = new Browser(app)
  t.match(await browser.get('/auth/pages/sign-in'), { statusCode: 200, body: /<form method="post" action="\/auth\/local\/login">/ })
  t.equal((await browser.post('/auth/local/register', ADA)).statusCode, 201)
  t.match(await browser.get('/auth/pages/account'), { statusCode: 200, body: /ada@example\.com/ })
  for (const [error, code] of [[new other.SignInRefused('not_invited'), 'not_invited'], [new other.AuthError('blocked'), 'blocked']] as const) {
    refusal = error
    t.match((await new Browser(app).post('/auth/local/login', ADA)).json(), { statusCode: 403, code })
  }
})

t.test('attack 168: what another version has made is refused by a sentence', async t => {
  const other = await otherCopy(t, '9.9.9')
  const session = { secret: SESSION_SECRET }
  const made = {
    local: new other.LocalIdentityProvider({ secret: SECRET }),
    pages: new other.Pages({ name: 'Shop' }),
    passkeys: new other.Passkeys({ name: 'Shop' }),
    secondFactor: new other.SecondFactor({ issuer: 'Shop' }),
    store: new other.SqlAuthStore(':memory:')
  }
  for (const [name, value] of Object.entries(made)) {
    await t.rejects(startApp(t, { session, [name]: value }), {
      code: 'invalid_options',
      message: `${name} is of fastify-svc-auth 9.9.9, but the plugin of ${VERSION}: the application has two versions of the package; ` +
        'install one (npm ls fastify-svc-auth shows which package needs which)'
    })
  }
  t.ok(new other.AuthError('blocked') instanceof AuthError, 'an error has the same members in each version')
})

t.test('an instance of a class is not one of its subclasses, and nothing else is one', async t => {
  t.ok(new SignInRefused('not_invited') instanceof AuthError)
  t.notOk(new AuthError('blocked') instanceof SignInRefused)
  t.notOk(new OptionsError('') instanceof AuthError)
  for (const value of [null, undefined, 'AuthError', {}, new Error('AuthError'), LocalIdentityProvider]) {
    t.notOk(value instanceof AuthError)
    t.notOk(value instanceof LocalIdentityProvider)
  }
})

t.test('attack 168: a page that is broken answers its error, and does not lead to itself', async t => {
  const pages = new Pages({ name: 'Shop' })
  const of = pages.look.of.bind(pages.look)
  pages.look.of = (site, prefix) => Object.assign(of(site, prefix), { send () { throw new Error('a broken page') } })
  const app = await startApp(t, { session: { secret: SESSION_SECRET }, local: new LocalIdentityProvider({ secret: SECRET }), pages })
  for (const page of ['sign-in', 'register']) {
    const answer = await new Browser(app).get(`/auth/pages/${page}`, { accept: 'text/html' })
    const { location } = answer.headers
    if (page === 'register') t.match(location, /^\/auth\/pages\/sign-in\?error=/, 'another page may show it')
    else t.strictSame([answer.statusCode, location], [500, undefined])
  }
})
