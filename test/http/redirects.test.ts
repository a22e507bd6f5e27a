import t from 'tap'
import { sameOriginPath, startsLinking, withError } from '../../lib/http/redirects.js'
import { foreignTargets, ownTargets } from '../helpers/redirect-targets.js'

const ORIGINS = ['https://app.example', 'http://app.example', 'http://localhost:3000']

for (const origin of ORIGINS) {
  t.test(`attack 26: targets that lead away from ${origin} are refused, not repaired`, async t => {
    const repaired = foreignTargets(origin).filter(target => sameOriginPath(target, origin) !== null)

    t.strictSame(repaired, [])
  })

  t.test(`a target at ${origin} is followed, and what is followed leads nowhere else, from whichever page`, async t => {
    const targets = ownTargets(origin)

    const followed = targets.map(([target]) => sameOriginPath(target, origin))

    t.strictSame(followed, targets.map(([, path]) => path))
    t.strictSame(followed.filter(path => !staysAt(origin, path)), [])
  })
}

t.test('attack 27: the http twin and another port are another origin, the default port is not', async t => {
  t.equal(sameOriginPath('http://app.example/', 'https://app.example'), null)
  t.equal(sameOriginPath('https://app.example/', 'http://app.example'), null)
  t.equal(sameOriginPath('https://app.example:444/', 'https://app.example'), null)
  t.equal(sameOriginPath('http://localhost:3001/', 'http://localhost:3000'), null)
  t.equal(sameOriginPath('HTTPS://APP.EXAMPLE:443/here', 'https://app.example'), '/here')
  t.equal(sameOriginPath('http://app.example:80/here', 'http://app.example'), '/here')
})

t.test('a target of 2048 characters is followed, a longer one is not', async t => {
  t.equal(sameOriginPath('/'.padEnd(2048, 'a'), 'https://app.example')?.length, 2048)
  t.equal(sameOriginPath('/'.padEnd(2049, 'a'), 'https://app.example'), null)
  t.equal(sameOriginPath('/'.padEnd(8192, 'a'), 'https://app.example'), null)
})

t.test('a value that is not a string is refused as a target', async t => {
  const values = [undefined, null, true, 1, {}, ['/here'], ['/here', '/there'], { toString: () => '/here' }, new URL('https://app.example/here')]

  t.strictSame(values.filter(value => sameOriginPath(value, 'https://app.example') !== null), [])
})

t.test('attack 22: a redirect to a login route with link is one that starts linking, however it is spelled and wherever it is mounted', async t => {
  const paths = [
    '/auth/a/login?link=true', '/auth/a/login?next=/&link=true', '/auth/a/login?link=1', '/auth/a/login?LINK=true',
    '/auth/a/login?%6cink=true', '/auth/a/login;link=true', '/auth/a/login;x;link=true', '/%61uth/a/%6cogin?link=true',
    '/auth//a//login?link=true', '/AUTH/a/LOGIN?link=true', '/auth/a/login/?link=true', '/x/../auth/a/login?link=true',
    '/sub/auth/a/login?link=true'
  ]

  for (const path of paths) t.ok(startsLinking(new URL(path, 'http://own.invalid').href.slice('http://own.invalid'.length)), path)
})

t.test('other paths do not start linking', async t => {
  const paths = [
    '/', '/auth/a/login', '/auth/a/login?next=/links', '/auth/a/login?backlink=true', '/docs?link=true',
    '/logins?link=true', '/login/help?link=true', '/a?next=/auth/a/login'
  ]

  for (const path of paths) t.notOk(startsLinking(path), path)
})

t.test('an error is put into the query, in front of any fragment', async t => {
  t.equal(withError('/', 'invalid'), '/?error=invalid')
  t.equal(withError('/form?lang=en#fields', 'exists'), '/form?lang=en&error=exists#fields')
  t.equal(withError('/form#fields?error=old', 'exists'), '/form?error=exists#fields?error=old')
})

t.test('attack 27: an error replaces those that are there, however they are spelled', async t => {
  t.equal(withError('/?error=old#f', 'invalid'), '/?error=invalid#f')
  t.equal(withError('/?error=old&a=b&error=older', 'invalid'), '/?error=invalid&a=b')
  t.equal(withError('/?%65rror=old', 'invalid'), '/?error=invalid')
  t.equal(withError('/?errors=kept', 'invalid'), '/?errors=kept&error=invalid')
})

/** As a browser resolves a Location header: a single slash, in which nothing reads a host, plain ASCII, and the same when it is checked again. */
function staysAt (origin: string, path: string | null): boolean {
  if (path === null) return true
  const pages = ['/', '/auth/local/login', '/deep/page?a=b']
  return /^\/(?!\/)[\x21-\x7e]*$/.test(path) && pages.every(page => new URL(path, origin + page).origin === origin) && sameOriginPath(path, origin) === path
}
