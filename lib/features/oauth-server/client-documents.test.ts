import type { OutgoingHttpHeaders } from 'node:http'
import t, { type Test } from 'tap'
import { clientDocuments, isDocumentUrl } from './client-documents.js'
import type { OAuthClient } from './client.js'
import { hastenTime } from '../../../test/helpers/clock.js'
import { publicHost, replaceInternet } from '../../../test/helpers/public-host.js'

interface Answer {
  readonly status?: number
  readonly headers?: OutgoingHttpHeaders
  /** Members beside the client_id and one redirect URI; a text is sent as it is. */
  readonly body?: object | string
}

/** Returns what finds the client whose document a host sends. */
async function clientsOf (t: Test): Promise<(answer: Answer) => Promise<OAuthClient>> {
  let next: Answer = {}
  const { origin, network } = await publicHost(t, ({ url }, response) => {
    const { status = 200, headers = { 'content-type': 'application/json' }, body = {} } = next
    const document = { client_id: `${origin}${url}`, redirect_uris: ['https://client.example/cb'], ...Object(body) }
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(document))
  })
  const documents = clientDocuments(new Set(['cursor']), network)
  let path = 0
  return async answer => {
    next = answer
    return documents.get(`${origin}/${++path}/client.json`, `192.0.2.${path}`)
  }
}

const rule = (text: string) => ({
  code: 'invalid_request',
  statusCode: 400,
  message: `The application that asks for access is set up wrong: its document ${text}.`
})

t.test('the id of a client with a document is an https: URL with a path, in one spelling', async t => {
  t.strictSame([
    'https://client.example/client.json', 'https://client.example:8443/a/b?c=d',
    'https://claude.ai/oauth/mcp-oauth-client-metadata', 'https://client.example/a/'
  ].filter(id => !isDocumentUrl(id)), [])
  t.strictSame([
    '', 'client', 'https://client.example', 'https://client.example/', 'https://client.example/?a', 'http://client.example/a', 'cursor://client.example/a',
    'https://client.example/a#', 'https://client.example/a#b', 'https://client.example/a/../b', 'https://client.example/./a', 'https://client.example/%2e%2E/a',
    'https://user@client.example/a', 'https://@client.example/a', 'https://CLIENT.example/a', 'HTTPS://client.example/a', 'https://client.example:443/a',
    'https:client.example/a', 'https:\\\\client.example\\a', 'https://client.example/a b', ' https://client.example/a', 'https://client.example/a\n',
    'https://b\u00fccher.example/a', 'https://127.0.0.1/a', 'https://[::1]/a', 'https://2130706433/a',
    'https://8.8.8.8/a', `https://client.example/${'a'.repeat(2048)}`
  ].filter(isDocumentUrl), [])
})

t.test('a client is what its document says', async t => {
  const clientOf = await clientsOf(t)
  const body = {
    client_name: 'Notes for Everyone',
    redirect_uris: ['https://client.example/cb', 'javascript:alert(1)', 'http://127.0.0.1:33418', 'cursor://anysphere.cursor-mcp/oauth/callback', 7],
    application_type: 'web',
    client_uri: 'javascript:alert(1)',
    logo_uri: 'http://169.254.169.254/',
    grant_types: ['authorization_code', 'refresh_token'],
    scope: 'everything',
    firstParty: true,
    kind: 'configured'
  }

  const { id, ...client } = await clientOf({ body })

  t.match(id, /^https:\/\/client\.example:\d+\/1\/client\.json$/)
  t.strictSame(client, {
    name: 'Notes for Everyone',
    redirectUris: ['https://client.example/cb', 'http://127.0.0.1:33418', 'cursor://anysphere.cursor-mcp/oauth/callback'],
    firstParty: false,
    kind: 'document'
  })
})

t.test('a name is one line of at most 100 characters, and a client without one has none', async t => {
  const clientOf = await clientsOf(t)
  const names: ReadonlyArray<readonly [sent: unknown, shown: string | null]> = [
    [undefined, null], ['', null], [' ', null], ['\u200b\u202e', null], [7, null], [['Notes'], null], [{ en: 'Notes' }, null], [null, null],
    [' Notes\r\n\tof  Ada ', 'Notes of Ada'], ['\u202eseton\u202c\u2066\u0007', 'seton'], ['<b>Notes</b>', '<b>Notes</b>'],
    ['a'.repeat(101), 'a'.repeat(100)], ['\u{1f5d2}'.repeat(101), '\u{1f5d2}'.repeat(100)], [`${'a'.repeat(99)} b`, 'a'.repeat(99)], ['a\ud800', 'a\ufffd']
  ]

  for (const [sent, shown] of names) t.equal((await clientOf({ body: { client_name: sent } })).name, shown, JSON.stringify(sent))
})

t.test('a client may do without authentication, whatever method it prefers', async t => {
  const clientOf = await clientsOf(t)

  for (const body of [
    { token_endpoint_auth_method: 'none' },
    { token_endpoint_auth_method: 'none', token_endpoint_auth_methods_supported: ['private_key_jwt'] },
    // ChatGPT
    { token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'] },
    { token_endpoint_auth_methods_supported: ['none'] }
  ]) t.match(await clientOf({ body }), { kind: 'document' })
  for (const body of [
    { token_endpoint_auth_method: 'private_key_jwt' },
    { token_endpoint_auth_method: 'client_secret_basic', client_secret: 'known to all' },
    { token_endpoint_auth_method: ['none'] },
    { token_endpoint_auth_method: null },
    { token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_methods_supported: 'none' }
  ]) {
    const allow = 'must allow the token_endpoint_auth_method "none": keys and secrets of clients are not supported here'
    await t.rejects(clientOf({ body }), rule(allow))
  }
})

t.test('a document that breaks a rule is refused with a sentence that names it', async t => {
  const clientOf = await clientsOf(t)

  for (const id of ['https://client.example/client.json', undefined, 7, ['a']]) {
    await t.rejects(clientOf({ body: { client_id: id } }), rule('must have its own URL as its client_id, letter for letter'))
  }
  const unusable = ['http://client.example/cb', 'myapp://cb', 'javascript:alert(1)', 7]
  for (const uris of [undefined, [], 'https://client.example/cb', unusable, { 0: 'https://client.example/cb' }]) {
    await t.rejects(clientOf({ body: { redirect_uris: uris } }), rule('must list redirect_uris, at least one of which can be used here'))
  }
  for (const body of ['', '{', 'null', '[]', '"https://client.example"', '<html>']) {
    await t.rejects(clientOf({ body }), rule('must be a JSON object, with the content type application/json'))
  }
})

t.test('a document is JSON by its content type: a file that users have uploaded does not speak for the host', async t => {
  const clientOf = await clientsOf(t)

  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;a', 'application/vnd.a-b.c+json']) {
    t.match(await clientOf({ headers: { 'content-type': type } }), { kind: 'document' }, type)
  }
  const others = [
    'text/plain', 'text/html', 'image/png', 'text/json', 'application/jsonp', 'application/octet-stream', 'text/plain; application/json',
    'application/+json'
  ].map(type => ({ 'content-type': type }))
  for (const headers of [{}, ...others]) {
    await t.rejects(clientOf({ headers }), rule('must be a JSON object, with the content type application/json'))
  }
})

t.test('documents come from the internet', async t => {
  const { origin, network, resolved } = await publicHost(t, (request, response) => {
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ client_id: origin + request.url, redirect_uris: ['http://localhost/'] }))
  })
  replaceInternet(t, network)

  t.match(await clientDocuments(new Set()).get(`${origin}/a`, ''), { id: `${origin}/a`, name: null })
  t.strictSame(resolved, ['client.example'])
})

t.test('a document that comes too slowly is unavailable', async t => {
  const { origin, network: { timeLimit: _, ...network } } = await publicHost(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{')
  })
  hastenTime(t, 10)

  const expected = { code: 'unavailable', cause: { message: /^client\.example:\d+ did not answer within 2\.5 seconds$/ } }
  await t.rejects(clientDocuments(new Set(), network).get(`${origin}/a`, ''), expected)
})

t.test('a document that cannot be fetched is unavailable, and the client never unknown', async t => {
  const clientOf = await clientsOf(t)
  const unavailable = {
    code: 'unavailable',
    statusCode: 503,
    message: 'The application that asks for access cannot be reached at the moment; try again later.',
    cause: { message: /^client\.example:\d+ did not answer with the status 200$/ }
  }

  for (const status of [301, 403, 404, 410, 429, 500, 503]) await t.rejects(clientOf({ status }), unavailable)
})
