import t from 'tap'
import { redirectTarget, sameOriginPath, trustedUrl, withError } from '../../lib/core/redirects.js'
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

const TRUSTED = new Set(['https://front.example', 'http://localhost:8080'])

for (const origin of ORIGINS) {
  t.test(`attack 26: with trusted origins, what leads away from ${origin} leads to one of these or is refused`, async t => {
    const followed = foreignTargets(origin).filter(target => redirectTarget(target, origin, TRUSTED) !== null)
    t.strictSame(followed, [])

    for (const trusted of TRUSTED) {
      const astray = foreignTargets(trusted)
        .map(target => redirectTarget(target, origin, TRUSTED))
        .filter(found => found !== null && !found.startsWith(`${trusted}/`) && !staysAt(origin, found))
      t.strictSame(astray, [], trusted)
    }
  })
}

t.test('attack 26: a trusted origin is followed as it is written in the list, and in no other spelling', async t => {
  const at = (target: unknown): string | null => trustedUrl(target, TRUSTED)

  t.equal(at('https://front.example'), 'https://front.example/')
  t.equal(at('https://front.example/a/../b?c=d#e'), 'https://front.example/b?c=d#e')
  t.equal(at('https://front.example?a'), 'https://front.example/?a')
  t.equal(at('https://front.example#a'), 'https://front.example/#a')
  t.equal(at('http://localhost:8080/here'), 'http://localhost:8080/here')
  t.equal(at('https://front.example//evil.test'), 'https://front.example//evil.test', 'a path of that origin')
  for (const target of [
    'https://front.example.evil.test/', 'https://front.examples/', 'https://front.example.', 'https://front.example./', 'https://a.front.example/',
    'http://front.example/', 'https://front.example:443/', 'https://front.example:444/', 'https://front.example:/', 'http://localhost/',
    'http://localhost:80801/', 'http://127.0.0.1:8080/', 'https://localhost:8080/',
    'HTTPS://front.example/', 'https://FRONT.example/', 'https:front.example/', 'https:/front.example/', 'https:///front.example/', '//front.example/',
    'https:\\\\front.example/', 'https://front.example\\evil.test', 'https://front.example\\@evil.test', ' https://front.example/', 'https://front.example\t/',
    'https://front\t.example/', 'https://fr\u00adont.example/', 'https://\uff46ront.example/', 'https://front\u3002example/', 'https://front%2eexample/',
    'https://user@front.example/', 'https://@front.example/', 'https://front.example@evil.test/', 'https://front.example:a@evil.test/',
    'https://evil.test/https://front.example/', 'https://evil.test#https://front.example/', 'blob:https://front.example/8d3f', 'null', '',
    `https://front.example/${'a'.repeat(2048)}`, `https://front.example/${'\u6f22'.repeat(2000)}`, ['https://front.example/'], null, undefined
  ]) t.equal(at(target), null, String(target).slice(0, 60))
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

t.test('a value that is not a string is refused as a target', async t => {
  const values = [undefined, null, true, 1, {}, ['/here'], ['/here', '/there'], { toString: () => '/here' }, new URL('https://app.example/here')]

  t.strictSame(values.filter(value => sameOriginPath(value, 'https://app.example') !== null), [])
})

t.test('an error is put into the query, in front of any fragment', async t => {
  t.equal(withError('https://front.example/form?lang=en#fields', 'exists'), 'https://front.example/form?lang=en&error=exists#fields')
  t.equal(withError('http://own.invalid/form', 'exists'), 'http://own.invalid/form?error=exists')
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
