import fc from 'fast-check'
import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { redirectTarget, sameOriginPath, trustedUrl, withError } from '../../lib/core/redirects.js'
import { localProvider, startApp } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider } from '../helpers/own-provider.js'
import { anyCharacter, holds } from '../helpers/properties.js'
import { foreignTargets, ownTargets } from '../helpers/redirect-targets.js'

const ORIGIN = 'https://app.example'
const ORIGINS = [ORIGIN, 'http://app.example', 'http://localhost:3000', 'https://[::1]:8443', 'http://xn--nave-zpa.example']
/** Origins that an application lists besides its own. */
const TRUSTED = ['https://front.example', 'http://localhost:8080']
const ADA = { email: 'ada@example.com', password: 'correct horse' }

/** Runs that only call a function, and runs that send requests. */
const MANY = 10_000
const SOME = 300

/** What means something in an address, to some reader at least. */
const PIECES = [
  '/', '//', '\\', '.', '..', '...', '/./', '/../', '%2e', '%2E%2e', '@', ':', '?', '#', ';', '&', '=', '+', '%', '[', ']', '|', '^', '*', '"', '<', '>', '~',
  '\t', '\n', '\r', '\r\n', '\u0000', '\u001f', '\u007f', ' ', '%09', '%0a', '%0d%0a', '%00', '%20', '%2f', '%2F', '%5c', '%252f', '%25', '%c0%af', '%ff',
  '\u00a0', '\u00ad', '\u0085', '\u200b', '\u2028', '\u2044', '\u3000', '\u3002', '\uff0e', '\uff0f', '\uff3c',
  '\uff1a', '\uff20', '\ufeff', '\u202e', '\ud800', '\udfff', '\u212a', '\u0130', 'é', '漢',
  'http:', 'https:', 'HTTP', 'javascript:', 'data:', 'blob:', 'file:', 'ws:', 'x:', 'evil.test', 'app.example',
  'localhost', '127.1', '[::1]', 'xn--', '443', '3000', ':0', 'a', 'login', 'link=true', 'error=old',
  ...ORIGINS, ...TRUSTED, 'front.example', '8080'
]

const piece = fc.constantFrom(...PIECES)
const text = (maxLength: number) => fc.oneof(fc.string({ unit: anyCharacter, maxLength }), fc.string({ unit: 'grapheme', maxLength }))
const pieces = fc.array(fc.oneof({ weight: 4, arbitrary: piece }, text(3)), { maxLength: 12 }).map(parts => parts.join(''))
const url = fc.webUrl({ validSchemes: ['http', 'https', 'ftp', 'ws', 'javascript', 'file'], withQueryParameters: true, withFragments: true })
const known = fc.constantFrom(...[...ORIGINS, ...TRUSTED].flatMap(origin => [...foreignTargets(origin), ...ownTargets(origin).map(([target]) => target)]))
/** One that is known, with something put into it somewhere. */
const altered = fc.tuple(known, fc.nat(), pieces).map(([target, at, inserted]) => {
  const index = at % (target.length + 1)
  return target.slice(0, index) + inserted + target.slice(index)
})
const target = fc.oneof(
  { weight: 3, arbitrary: pieces },
  altered,
  url,
  text(60),
  fc.tuple(pieces, url).map(parts => parts.join('')),
  fc.tuple(fc.constantFrom(...ORIGINS, ...TRUSTED), pieces).map(parts => parts.join(''))
)
const origin = fc.oneof(fc.constantFrom(...ORIGINS), fc.webUrl().map(url => new URL(url).origin))

/** Nothing in it is read as a host: one slash in front, and plain ASCII without backslashes. */
const PATH = /^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/

/** Pages on which the browser may be when it reads a Location. */
const PAGES = ['/', '/auth/local/login', '/deep/page?a=b#c']

function staysAt (origin: string, location: string): boolean {
  return PAGES.every(page => new URL(location, origin + page).origin === origin)
}

t.test('attack 26: what a string is followed to is a path of this origin, from whichever page, and the same when it is asked again', async t => {
  await holds(t, fc.property(target, origin, (target, origin) => {
    const path = sameOriginPath(target, origin)
    return path === null || (PATH.test(path) && staysAt(origin, path) && sameOriginPath(path, origin) === path)
  }), MANY)
})

t.test('attack 26: a string that the URL parser takes to another origin is refused', async t => {
  await holds(t, fc.property(target, origin, (target, origin) => {
    fc.pre(!URL.canParse(target, origin) || new URL(target, origin).origin !== origin)
    return sameOriginPath(target, origin) === null
  }), MANY)
})

t.test('attack 26: with trusted origins a string is followed to a path of this origin, or to a URL that is written with one of these', async t => {
  const trusted = new Set(TRUSTED)
  await holds(t, fc.property(target, origin, (target, origin) => {
    const found = redirectTarget(target, origin, trusted)
    if (found === null || found.startsWith('/')) return found === sameOriginPath(target, origin)
    const led = TRUSTED.find(other => found.startsWith(`${other}/`))
    return led !== undefined && target.startsWith(led) && new URL(found, origin).origin === led && trustedUrl(found, trusted) === found &&
      withError(found, 'a').startsWith(`${led}/`)
  }), MANY)
})

t.test('a path with query and fragment is followed as it is, relative or with its origin', async t => {
  const plain = fc.tuple(fc.webPath(), fc.webQueryParameters(), fc.webFragments()).map(([path, query, fragment]) => {
    const { pathname, search, hash } = new URL(`/a${path}?${query}#${fragment}`, ORIGIN)
    return pathname + search + hash
  })
  await holds(t, fc.property(plain, origin, (path, origin) => sameOriginPath(path, origin) === path && sameOriginPath(origin + path, origin) === path), MANY)
})

t.test('attack 27: whatever an error is added to stays what it was, with that error once', async t => {
  await holds(t, fc.property(target, origin, fc.stringMatching(/^[a-z0-9_]{1,50}$/), (target, origin, code) => {
    const path = sameOriginPath(target, origin)
    fc.pre(path !== null)
    const [before, after] = [new URL(path, origin), new URL(withError(path, code), origin)]
    const others = ({ searchParams }: URL) => [...searchParams].filter(([name]) => name !== 'error')
    return PATH.test(withError(path, code)) && after.origin === origin && after.pathname === before.pathname && after.hash === before.hash &&
      after.searchParams.getAll('error').join() === code && JSON.stringify(others(after)) === JSON.stringify(others(before))
  }), MANY)
})

const LISTS: ReadonlyArray<readonly string[]> = [[], TRUSTED]

t.test('no route redirects to another origin than its own and those that are listed', async t => {
  for (const trustedOrigins of LISTS) await t.test(`listed: ${trustedOrigins.join()}`, async t => withOrigins(t, trustedOrigins))
})

async function withOrigins (t: Test, trustedOrigins: readonly string[]): Promise<void> {
  const app = await startApp(t, { baseUrl: ORIGIN, trustedOrigins, providers: [new OwnProvider('a')], local: localProvider(), rateLimit: false })
  await new Browser(app).post('/auth/local/register', ADA)

  /** A property of an answer: no failure of the server, and no other origin. */
  function staysHere ({ statusCode, headers: { location } }: LightMyRequestResponse): boolean {
    return statusCode < 500 && (location === undefined ? statusCode >= 400 : isAllowed(location))
  }

  function isAllowed (location: string): boolean {
    return (PATH.test(location) && staysAt(ORIGIN, location)) || trustedOrigins.some(origin => location.startsWith(`${origin}/`))
  }

  async function assertStays (t: Test, send: (target: string) => Promise<LightMyRequestResponse>): Promise<void> {
    await holds(t, fc.asyncProperty(target, async target => staysHere(await send(target))), SOME)
  }

  t.test('attack 26: no next of a sign-in leaves the origin', async t => {
    await assertStays(t, async next => new Browser(app).submit('/auth/local/login', { ...ADA, next }))
  })

  t.test('attack 26: no next of a registration leaves the origin', async t => {
    let people = 0
    await assertStays(
      t,
      async next => new Browser(app).submit('/auth/local/register', {
        email: `person-${people++}@example.com`,
        password: ADA.password,
        next
      })
    )
  })

  t.test('attack 26: no next of a sign-out leaves the origin', async t => {
    await assertStays(t, async next => new Browser(app).submit('/auth/local/revoke', { next }))
  })

  t.test('attack 26: no next of a sign-in at a provider leaves the origin, nor a Referer when that fails', async t => {
    await holds(t, fc.asyncProperty(target.filter(({ length }) => length <= 8192), target, fc.boolean(), async (next, referer, fails) => {
      const browser = new Browser(app)
      const { statusCode, headers: { location = '' } } = await browser.get(`/auth/a/login?${new URLSearchParams({ next })}`, { referer })
      const { origin, searchParams } = new URL(location)
      const code = JSON.stringify({ subject: 'ada', claims: { sub: 'ada' }, emailVerified: false })
      const back = await browser.get(
        `/auth/a/callback?${new URLSearchParams({ state: searchParams.get('state') ?? '', next, ...(fails ? { error: 'access_denied' } : { code }) })}`,
        { referer }
      )
      // A provider that fails is 502 where there is no page to show it on.
      return statusCode === 302 && origin === 'https://a.example' && (staysHere(back) || (fails && back.statusCode === 502))
    }), SOME)
  })

  t.test('attack 27: no error_next and no Referer leaves the origin', async t => {
    await assertStays(t, async target => new Browser(app).submit('/auth/local/login', { ...ADA, password: 'wrong horse', error_next: target }))
    await assertStays(t, async target => new Browser(app).submit('/auth/local/login', { ...ADA, password: 'wrong horse' }, { referer: target }))
    await assertStays(t, async target => new Browser(app).submit('/auth/local/register', { ...ADA, error_next: target }, { referer: target }))
    await assertStays(t, async target => new Browser(app).get('/auth/a/login?link=true', { referer: target }))
    await assertStays(t, async target => new Browser(app).get('/auth/a/callback?state=guess', { referer: target }))
  })

  t.test('attack 26: a query or a body of any bytes does not make the server fail', async t => {
    await assertStays(
      t,
      async next => app.inject({
        method: 'POST',
        url: '/auth/local/login',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: `next=${next}&error_next=${next}&email=a&password=b`
      })
    )
    await holds(t, fc.asyncProperty(fc.jsonValue(), fc.constantFrom('text/html', 'application/json'), async (value, accept) => {
      const browser = new Browser(app)
      const answers = [
        await browser.post('/auth/local/login', { ...ADA, next: value }, { accept }),
        await browser.post('/auth/local/login', { ...ADA, password: 'wrong horse', error_next: value }, { accept })
      ]
      return answers.every(answer => answer.statusCode === 200 || staysHere(answer))
    }), SOME)
  })
}
