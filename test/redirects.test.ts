import t from 'tap'
import { sameOriginPath, startsLinking, withError } from '../lib/redirects.js'

const ORIGINS = ['https://app.example', 'http://app.example', 'http://localhost:3000']

/** Attack 26, and what else is known to fool such checks. `$` stands for the origin, `~` for its host. */
const ELSEWHERE = [
  '//evil', '///evil', '////evil', '//evil/%2f..', '//evil@~', '//~@evil', '//~.evil.test/',
  '/\\evil', '\\\\evil', '\\/evil', '/a\\b', '/\\/evil', '/path?a=\\evil',
  '/\t/evil', '/\n/evil', '/\r/evil', '\t//evil', '/\u0000/evil', '\u0000', '\u0000//evil', '/a\u001fb', '/a\u007fb', '/a\r\nSet-Cookie: a=b',
  ' //evil', '  //evil', '\u0020\u0020//evil',
  'https:///evil', 'https:\\\\evil', 'https://evil', 'HTTPS://evil', 'http://~.evil.test', 'https://~.evil.test/',
  '$@evil', '$:@evil', '$.evil.test', '$evil.test', 'https://user@~/', 'https://user:password@~/', 'https://:password@~/',
  'https://~:444/', 'http://~:8080/', 'ftp://~/', 'ws://~/', 'wss://~/',
  'javascript:1', 'JavaScript:alert(1)', 'java\nscript:alert(1)', 'javascript://~/%0aalert(1)', 'data:,', 'data:text/html,<script>', 'vbscript:1', 'about:blank', 'mailto:a@b', 'file:///etc/passwd',
  'blob:$/8d3f', 'filesystem:$/temporary/x', 'view-source:$/',
  '/..//evil', '/.//evil', './/evil', '..//evil', '/a/..//evil', '/%2e%2e//evil', '/%2E//evil', '/a/b/../..//evil', '/.///evil', '/;/..//evil',
  'http://[', 'https://[::1', 'http://', '//', '///', 'https://', '//:80', 'https://%', 'https://a b/', '//\u3000',
  ''
]

const HERE = [
  ['/', '/'],
  ['/here', '/here'],
  ['/here?a=b#c', '/here?a=b#c'],
  ['/a?x=//evil', '/a?x=//evil'],
  ['/a?next=https://evil/', '/a?next=https://evil/'],
  ['/a#//evil', '/a#//evil'],
  ['/a//evil', '/a//evil'],
  ['/a/../b', '/b'],
  ['/%09/evil', '/%09/evil'],
  ['/%5cevil', '/%5cevil'],
  ['/%2F/evil', '/%2F/evil'],
  ['%2F%2Fevil', '/%2F%2Fevil'],
  ['/@evil', '/@evil'],
  ['/:80', '/:80'],
  ['here', '/here'],
  ['?a=b', '/?a=b'],
  ['#top', '/#top'],
  ['.', '/'],
  ['..', '/'],
  [' /here ', '/here'],
  ['/naïve?ü=ß#é', '/na%C3%AFve?%C3%BC=%C3%9F#%C3%A9'],
  ['/\ud800', '/%EF%BF%BD'],
  ['/\u2028\u0085', '/%E2%80%A8%C2%85'],
  ['/<script>"\'', '/%3Cscript%3E%22\''],
  ['$', '/'],
  ['$/here?a#b', '/here?a#b'],
  ['//~/here', '/here'],
  ['///~/here', '/here']
] as const

for (const origin of ORIGINS) {
  t.test(`attack 26: no target leads away from ${origin}`, async t => {
    const targets = ELSEWHERE.map(target => at(origin, target))

    const astray = targets.filter(target => !staysAt(origin, sameOriginPath(target, origin)))

    t.strictSame(astray, [])
  })

  t.test(`a target at ${origin} is followed`, async t => {
    const followed = HERE.map(([target]) => sameOriginPath(at(origin, target), origin))

    t.strictSame(followed, HERE.map(([, path]) => path))
    t.strictSame(followed.filter(path => !staysAt(origin, path)), [])
  })
}

t.test('attack 26: targets that lead elsewhere are refused, not repaired', async t => {
  const targets = ELSEWHERE.map(target => at('https://app.example', target))

  const repaired = targets.filter(target => sameOriginPath(target, 'https://app.example') !== null)

  t.strictSame(repaired, [])
})

t.test('attack 26: a scheme without slashes is relative on its own scheme and foreign on another', async t => {
  t.equal(sameOriginPath('https:evil', 'https://app.example'), '/evil')
  t.equal(sameOriginPath('https:/evil', 'https://app.example'), '/evil')
  t.equal(sameOriginPath('https:evil', 'http://app.example'), null)
  t.equal(sameOriginPath('https:/evil', 'http://app.example'), null)
  t.equal(sameOriginPath('http:evil', 'https://app.example'), null)
})

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

t.test('what is not a string is no target', async t => {
  const values = [undefined, null, true, 1, {}, ['/here'], ['/here', '/there'], { toString: () => '/here' }, new URL('https://app.example/here')]

  t.strictSame(values.filter(value => sameOriginPath(value, 'https://app.example') !== null), [])
})

t.test('attack 22: a redirect to a login route with link is one that starts linking, however it is spelled and wherever it is mounted', async t => {
  const paths = ['/auth/a/login?link=true', '/auth/a/login?next=/&link=true', '/auth/a/login?link=1', '/auth/a/login?LINK=true', '/auth/a/login?%6cink=true', '/auth/a/login;link=true', '/auth/a/login;x;link=true',
    '/%61uth/a/%6cogin?link=true', '/auth//a//login?link=true', '/AUTH/a/LOGIN?link=true', '/auth/a/login/?link=true', '/x/../auth/a/login?link=true', '/sub/auth/a/login?link=true']

  for (const path of paths) t.ok(startsLinking(new URL(path, 'http://own.invalid').href.slice('http://own.invalid'.length)), path)
})

t.test('other paths do not start linking', async t => {
  const paths = ['/', '/auth/a/login', '/auth/a/login?next=/links', '/auth/a/login?backlink=true', '/docs?link=true', '/logins?link=true', '/login/help?link=true', '/a?next=/auth/a/login']

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

/** Fills in the origin and its host. */
function at (origin: string, target: string): string {
  return target.replaceAll('$', origin).replaceAll(/(?<=[/@])~/g, new URL(origin).host)
}

/** As a browser resolves a Location header: a single slash, in which nothing reads a host, plain ASCII, and the same when it is checked again. */
function staysAt (origin: string, path: string | null): boolean {
  if (path === null) return true
  const pages = ['/', '/auth/local/login', '/deep/page?a=b']
  return /^\/(?!\/)[\x21-\x7e]*$/.test(path) && pages.every(page => new URL(path, origin + page).origin === origin) && sameOriginPath(path, origin) === path
}
