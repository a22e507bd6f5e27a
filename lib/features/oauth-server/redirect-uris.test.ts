import fc from 'fast-check'
import t from 'tap'
import {
  isPrivateScheme, isRegistrable, kindOf, matchingRedirect, registrableUris, shownTarget
} from './redirect-uris.js'
import { anyCharacter, holds } from '../../../test/helpers/properties.js'

const SCHEMES: ReadonlySet<string> = new Set(['cursor', 'vscode'])

const REGISTRABLE = [
  'https://client.example/callback', 'https://client.example', 'https://client.example/', 'https://client.example:8443/cb?a=b&c',
  'https://localhost/cb',
  'https://xn--bcher-kva.example/cb', 'https://claude.ai/api/mcp/auth_callback', 'https://vscode.dev/redirect', 'https://10.0.0.1/cb',
  'https://client.example/cb?iss=a%20b', "https://client.example/a(b)!$&'+,;=:@~_-.",
  'http://127.0.0.1/cb', 'http://127.0.0.1:33418', 'http://127.0.0.1:33418/', 'http://[::1]:8080/cb?a', 'http://localhost:3000/oauth/callback',
  'http://localhost',
  'com.example.app:/oauth2redirect', 'com.example.app://host/cb', 'com.googleusercontent.apps.123-abc:/cb?a=b',
  'cursor://anysphere.cursor-mcp/oauth/callback', 'vscode://vscode.github-authentication/did-authenticate'
]

const REFUSED: readonly unknown[] = [
  'http://client.example/cb', 'http://127.0.0.2/cb', 'http://127.1/cb', 'http://2130706433/cb', 'http://0.0.0.0/cb', 'http://[::]/cb',
  'http://[::ffff:7f00:1]/cb',
  'http://localhost.evil.example/cb', 'http://a.localhost/cb', 'http://localhost./cb', 'http://127.0.0.1.evil.example/cb', 'http://192.168.0.1/cb',
  'http://localhost@evil.example/cb', 'http://localhost:80@evil.example/cb', 'http://localhost:99999/cb',
  'javascript:alert(1)', 'JavaScript:alert(1)', 'javascript://client.example/%0aalert(1)', 'data:text/html,a', 'file:///etc/passwd',
  'blob:https://client.example/a',
  'vbscript:a', 'about:blank', 'view-source:https://client.example', 'filesystem:https://client.example/a', 'intent://scan/',
  'mailto:a@client.example', 'tel:1',
  'ws://localhost/', 'wss://client.example/', 'ftp://client.example/', 'urn:ietf:wg:oauth:2.0:oob',
  'myapp://cb', 'myapp:/cb', 'windsurf://cb', 'javascript.:alert(1)', '.app:/cb', 'com.example.app', 'com.example.app:', 'com.example.app:cb',
  'client.example:8080/cb', 'com_example.app:/cb',
  'https://client.example/cb#a', 'https://client.example/cb#', 'com.example.app:/cb#a',
  'https://user@client.example/cb', 'https://user:a@client.example/cb', 'https://@client.example/cb', 'https://:@client.example/cb',
  'com.example.app://a@b/cb',
  'https://*.client.example/cb', 'https://client.example/*', 'https://client.example/cb?*', 'http://localhost:*/cb',
  'https:client.example/cb', 'https:/client.example/cb', 'https:///client.example/cb', '//client.example/cb', '/cb', 'cb', '', 'https://',
  'https://client.example:/cb',
  'https:\\\\client.example/cb', 'https://client.example\\@evil.example/cb', 'https://client.example\\cb',
  ' https://client.example/cb', 'https://client.example/cb ', 'https://client.example/c b', 'https://client.example/cb\n',
  'https://client.example/\u0000',
  'https://client.example/\u007f', 'https://client\t.example/cb', 'https://b\u00fccher.example/cb', 'https://client.example/\u202ecb',
  'https://client\u3002example/cb',
  'HTTPS://client.example/cb', 'https://CLIENT.example/cb', 'https://client.example:443/cb', 'https://client.example/a/../cb',
  'https://client.example/./cb',
  'https://client.example/%2e%2e/cb', 'https://%63lient.example/cb', 'https://client.example?a', 'com.Example.app:/cb',
  'https://client.example/"', 'https://client.example/<a>', 'https://client.example/{a}', 'https://client.example/`', 'https://client.example/a|b',
  `https://client.example/${'a'.repeat(2048)}`, ['https://client.example/cb'], { href: 'https://client.example/cb' }, null, undefined, 7,
  new URL('https://client.example/cb')
]

t.test('https:, loopback and private schemes may be registered', async t => {
  t.strictSame(REGISTRABLE.filter(uri => !isRegistrable(uri, SCHEMES)), [])
})

t.test('nothing else may be registered', async t => {
  t.strictSame(REFUSED.filter(uri => isRegistrable(uri, SCHEMES)), [])
})

t.test('a scheme without a dot takes to be listed, and a scheme of browsers cannot be', async t => {
  t.notOk(isRegistrable('cursor://anysphere.cursor-mcp/oauth/callback', new Set()))
  t.strictSame(['cursor', 'vscode-insiders', 'web+app', 'com.example.app'].filter(scheme => !isPrivateScheme(scheme)), [])
  const others = ['javascript', 'http', 'https', 'data', 'file', 'blob', 'Cursor', 'cursor:', 'cursor://', '', '1a', 'a b', '*', 'a\n', null, 7, ['cursor']]
  t.strictSame(others.filter(isPrivateScheme), [])
  t.notOk(isRegistrable('javascript:alert(1)', new Set(['javascript'])))
  t.notOk(isRegistrable('data:,a', new Set(['data'])))
})

t.test('of the URIs that a client sends, those that may not be registered are dropped, and repeated ones', async t => {
  const sent = ['https://a.example/', 'javascript:1', 7, 'https://a.example/', 'http://localhost/']

  t.strictSame(registrableUris(sent, SCHEMES), ['https://a.example/', 'http://localhost/'])
  for (const other of [undefined, null, 'https://a.example/', { 0: 'https://a.example/', length: 1 }, 7]) t.strictSame(registrableUris(other, SCHEMES), [])
})

t.test('a URI matches letter for letter', async t => {
  const registered = ['https://client.example/callback', 'com.example.app:/cb', 'https://localhost:3000/cb']

  for (const uri of registered) t.equal(matchingRedirect(registered, uri), uri)
  for (const uri of [
    'https://client.example/callback/', 'https://client.example/callback?', 'https://client.example/callback?a',
    'https://client.example/callback#', 'https://client.example/',
    'https://client.example:443/callback', 'https://client.example:8443/callback', 'HTTPS://client.example/callback',
    'https://CLIENT.example/callback',
    'https://client.example/Callback', 'https://client.example/a/../callback', 'https://client.example/%63allback', 'http://client.example/callback',
    'https://a.client.example/callback', 'com.example.app:/cb/', 'com.example.app://cb', 'https://localhost:3001/cb', 'https://localhost/cb', '',
    ['https://client.example/callback'], undefined, null
  ]) t.equal(matchingRedirect(registered, uri), null, String(uri))
})

t.test('a loopback URI matches with any port, and with nothing else that differs', async t => {
  const registered = ['http://127.0.0.1/cb?a=b', 'http://[::1]:1455/cb', 'http://localhost:33418', 'http://localhost:3118/callback']

  for (const uri of [
    'http://127.0.0.1/cb?a=b', 'http://127.0.0.1:1/cb?a=b', 'http://127.0.0.1:65535/cb?a=b', 'http://[::1]/cb', 'http://[::1]:80/cb',
    'http://localhost:50000',
    'http://localhost', 'http://localhost/callback', 'http://localhost:1/callback'
  ]) t.equal(matchingRedirect(registered, uri), uri)
  for (const uri of [
    'http://127.0.0.1:1/cb', 'http://127.0.0.1:1/cb?a=c', 'http://127.0.0.1:1/cb?a=b&c', 'http://127.0.0.1:1/cb/?a=b',
    'http://127.0.0.1:1/cb?a=b#', 'http://127.0.0.2:1/cb?a=b',
    'http://localhost:1/cb?a=b', 'http://localhost:1/cb', 'http://127.0.0.1:1/callback', 'http://[::1]:1/', 'http://localhost:1/',
    'http://LOCALHOST:1/callback',
    'http://localhost:/callback', 'http://localhost:0/callback', 'http://localhost:65536/callback', 'http://localhost:99999/callback',
    'http://localhost:100000/callback',
    'http://localhost:1@evil.example/callback', 'http://localhost:1.evil.example/callback', 'http://localhost.evil.example/callback',
    'http://localhost\\/callback',
    'https://localhost:1/callback', 'http://localhost:1/callback\n', 'http://localhost:1/callback\r\nSet-Cookie: a',
    'http://localhost:1/call\tback', 'http:localhost/callback'
  ]) t.equal(matchingRedirect(registered, uri), null, JSON.stringify(uri))
})

t.test('no URI matches without one that is registered', async t => {
  t.equal(matchingRedirect([], 'http://localhost/'), null)
  t.equal(matchingRedirect(['https://client.example/'], 'http://localhost/'), null)
})

t.test('a page shows which host, or which scheme, gets the code, and where any program of the machine could', async t => {
  const shown = (uri: string): unknown => [kindOf(uri), shownTarget(uri)]

  t.strictSame(shown('https://client.example/cb'), ['https', 'client.example'])
  t.strictSame(shown('https://client.example:8443/cb'), ['https', 'client.example:8443'])
  t.strictSame(shown('http://127.0.0.1:33418/cb'), ['loopback', '127.0.0.1:33418'])
  t.strictSame(shown('http://[::1]/cb'), ['loopback', '[::1]'])
  t.strictSame(shown('http://localhost:3000'), ['loopback', 'localhost:3000'])
  for (const host of ['localhost', 'a.localhost', '127.0.0.5', '[::1]']) t.equal(kindOf(`https://${host}/cb`), 'loopback', host)
  t.strictSame(shown('cursor://anysphere.cursor-mcp/oauth/callback'), ['scheme', 'cursor:'])
  t.strictSame(shown('com.example.app:/cb'), ['scheme', 'com.example.app:'])
})

/** URIs near to those that may be registered. */
const uris = fc.oneof(
  fc.webUrl({ withQueryParameters: true }),
  fc.constantFrom(...REGISTRABLE),
  fc.tuple(
    fc.constantFrom('https://', 'http://', 'com.example.app:', 'cursor://', 'javascript:', 'https:', ''),
    fc.constantFrom('client.example', 'localhost', '127.0.0.1', '[::1]', ''),
    fc.constantFrom('', ':80', ':443', ':1234', '@evil.example', '.evil.example', '\\'),
    fc.string({ unit: fc.oneof(fc.constantFrom(...'/?#@.%\\* \t'), fc.constantFrom(...'abc123'), anyCharacter), maxLength: 12 })
  ).map(parts => parts.join(''))
)

/** Pages from which a browser may be redirected. */
const PAGES = ['https://app.example/auth/oauth/authorize?a', 'http://localhost:3000/', 'https://client.example/a/b']

t.test('what is registered is plain ASCII, reads the same to every page that redirects to it, and is not of this application', async t => {
  await holds(t, fc.property(uris, uri => {
    if (!isRegistrable(uri, SCHEMES)) return true
    const { protocol, href, hash, username, host } = new URL(uri)
    const isSame = PAGES.every(page => new URL(uri, page).href === href && new URL(uri, page).host === host)
    const isExact = protocol.startsWith('http') ? uri.startsWith(`${protocol}//${host}`) : uri.startsWith(protocol)
    const isSafe = ['https:', 'com.example.app:', 'cursor:', 'vscode:', 'com.googleusercontent.apps.123-abc:'].includes(protocol) ||
      (protocol === 'http:' && /^(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?$/.test(host))
    return /^[\x21-\x7e]+$/.test(uri) && isSame && isExact && isSafe && hash === '' && username === ''
  }), 30_000)
})

t.test('what matches is registered, or differs from what is registered by its port alone', async t => {
  const withoutPort = (uri: string): string => uri.replace(/:\d+/, '')
  const registrable = fc.array(uris.filter(uri => isRegistrable(uri, SCHEMES)), { maxLength: 4 })
  await holds(t, fc.property(registrable, uris, fc.nat(70_000), (registered, other, port) => {
    const asked = [other, ...registered, ...registered.map(uri => uri.replace(/^(http:\/\/[^/:?]+|http:\/\/\[::1\])(?::\d+)?/, `$1:${port}`))]
    return asked.every(uri => {
      const found = matchingRedirect(registered, uri)
      if (found === null) return !registered.includes(uri)
      const isLoopback = uri.startsWith('http:') && registered.some(own => withoutPort(own) === withoutPort(uri))
      return found === uri && isRegistrable(uri.replace(/:80(?=[/?]|$)/, ''), SCHEMES) && (registered.includes(uri) || isLoopback)
    })
  }), 30_000)
})
