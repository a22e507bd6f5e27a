import * as next from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { Loopback, type Site, signedUp, startSite } from './site.js'

const site = await startSite(t)
const ada = await signedUp(site)
const loopback = await Loopback.listen(t)

/** What a client has between its starts: a provider of OAuth as applications write one for the SDK. */
class Storage {
  readonly redirectUrl: string
  readonly requests: URL[] = []
  readonly forgotten: string[] = []
  information: { client_id: string } | undefined
  saved: { access_token: string, token_type: string, refresh_token?: string | undefined, scope?: string | undefined } | undefined
  #verifier = ''

  constructor (redirectUrl: string, clientId?: string) {
    this.redirectUrl = redirectUrl
    this.information = clientId === undefined ? undefined : { client_id: clientId }
  }

  get clientMetadata () {
    return { client_name: 'Assistant', redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none' }
  }

  state () { return 'a state' }
  clientInformation () { return this.information }
  saveClientInformation (information: { client_id: string }) { this.information = information }
  tokens () { return this.saved }
  saveTokens (tokens: NonNullable<Storage['saved']>) { this.saved = tokens }
  redirectToAuthorization (url: URL) { this.requests.push(url) }
  saveCodeVerifier (verifier: string) { this.#verifier = verifier }
  codeVerifier () { return this.#verifier }

  invalidateCredentials (what: string) {
    this.forgotten.push(what)
    if (what !== 'verifier') this.saved = undefined
    if (what === 'all' || what === 'client') this.information = undefined
  }
}

/** Whether a promise ends because the user must be asked; the class of SDK 1.x has no name that tap could compare. */
async function mustAsk ({ Unauthorized }: Sdk, promise: Promise<unknown>): Promise<boolean> {
  const error: unknown = await promise.then(() => null, error => error)
  if (error instanceof Unauthorized || error === null) return error !== null
  throw error
}

interface Sdk {
  Client: new (info: { name: string, version: string }) => {
    connect: (transport: never) => Promise<void>
    callTool: (call: { name: string, arguments: Record<string, string> }) => Promise<object>
    close: () => Promise<void>
  }
  Transport: new (url: URL, options: { authProvider: never }) => {
    finishAuth: (code: string, iss?: string) => Promise<void>
  }
  Unauthorized: new (...args: never[]) => Error
}

const SDKS: Record<string, Sdk> = {
  '1.x': { Client, Transport: StreamableHTTPClientTransport, Unauthorized: UnauthorizedError },
  '2.x': { Client: next.Client, Transport: next.StreamableHTTPClientTransport, Unauthorized: next.UnauthorizedError }
}

/** An assistant that was started with what it has stored. */
function start ({ Client, Transport }: Sdk, storage: Storage, { resource }: Site = site) {
  const transport = new Transport(new URL(resource), { authProvider: storage as never })
  const client = new Client({ name: 'assistant', version: '1.0.0' })
  return { client, transport, connect: () => client.connect(transport as never) }
}

/** Starts an assistant, which sends its user to the consent, and starts it again. */
async function connected (sdk: Sdk, storage: Storage) {
  const first = start(sdk, storage)
  await mustAsk(sdk, first.connect())
  const answer = await loopback.allowedBy(ada, storage.requests.at(-1) ?? '')
  await first.transport.finishAuth(answer.get('code') ?? '', answer.get('iss') ?? undefined)
  const second = start(sdk, storage)
  await second.connect()
  return second.client
}

const note = (text: string) => ({ name: 'add_note', arguments: { text } })
const LIST = { name: 'list_notes', arguments: {} }

for (const [version, sdk] of Object.entries(SDKS)) {
  t.test(`SDK ${version}: a client registers itself, is allowed, and calls tools`, async t => {
    const storage = new Storage(loopback.redirectUri)
    const client = await connected(sdk, storage)

    t.match(storage.information?.client_id, /^client_/)
    const [request] = storage.requests
    t.match(Object.fromEntries(request?.searchParams ?? []), {
      resource: site.resource, code_challenge_method: 'S256', state: 'a state'
    })
    t.equal(storage.saved?.scope, 'notes:read notes:write', 'the scopes come from the metadata or the challenge')
    await client.callTool(note(`of ${version}`))
    t.match(JSON.stringify(await client.callTool(LIST)), `of ${version}`)
    await client.close()
  })

  t.test(`SDK ${version}: a client whose id its user has typed registers nothing`, async t => {
    const response = await fetch(`${site.url}/auth/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [loopback.redirectUri] })
    })
    const { client_id: id } = Object(await response.json())
    const storage = new Storage(loopback.redirectUri, id)
    const client = await connected(sdk, storage)

    t.equal(storage.requests[0]?.searchParams.get('client_id'), id)
    t.match(await client.callTool(LIST), { content: [] })
    await client.close()
  })

  t.test(`SDK ${version}: a client with an old access token refreshes, and the user is not asked`, async t => {
    const storage = new Storage(loopback.redirectUri)
    await (await connected(sdk, storage)).close()
    const before = storage.saved
    storage.saved = before && { ...before, access_token: `${before.access_token.slice(0, -3)}AAA` }

    const { client, connect } = start(sdk, storage)
    await connect()
    t.match(await client.callTool(LIST), { content: [] })
    t.equal(storage.requests.length, 1)
    t.not(storage.saved?.refresh_token, before?.refresh_token)
    await client.close()
  })

  t.test(`SDK ${version}: several windows share what is stored, and all stay connected`, async t => {
    const storage = new Storage(loopback.redirectUri)
    await (await connected(sdk, storage)).close()
    const shared = storage.saved
    const windows = Array.from({ length: 5 }, () => {
      const window = new Storage(loopback.redirectUri)
      window.information = storage.information
      window.saved = shared && { ...shared, access_token: 'sat_old' }
      return { window, ...start(sdk, window) }
    })
    await Promise.all(windows.map(async ({ connect }) => connect()))
    for (const { window, client } of windows) {
      t.match(await client.callTool(LIST), { content: [] })
      t.strictSame(window.requests, [])
      await client.close()
    }
  })

  t.test(`SDK ${version}: a client that the user has disconnected asks again`, async t => {
    const storage = new Storage(loopback.redirectUri)
    const client = await connected(sdk, storage)
    await ada.open(`${site.url}/auth/pages/account`)
    while (ada.page.text.includes('>Disconnect</button>')) await ada.press('Disconnect')

    t.ok(await mustAsk(sdk, client.callTool(LIST)))
    t.equal(storage.requests.length, 2)
    await client.close()
  })

  t.test(`SDK ${version}: a client whose registration is gone registers anew`, async t => {
    const storage = new Storage(loopback.redirectUri, 'client_AAAAAAAAAAAAAAAAAAAAAAAA')
    storage.saved = { access_token: 'sat_old', token_type: 'Bearer', refresh_token: 'srt_old' }
    t.ok(await mustAsk(sdk, start(sdk, storage).connect()))

    t.match(storage.information?.client_id, /^client_(?!A{24}$)/)
    t.ok(storage.forgotten.some(what => ['all', 'client'].includes(what)))
  })

  t.test(`SDK ${version}: a user who signs out everywhere has disconnected all clients`, async t => {
    const visitor = await signedUp(site, { email: `everywhere-${version}@example.com`, password: 'a correct horse' })
    const storage = new Storage(loopback.redirectUri)
    const first = start(sdk, storage)
    t.ok(await mustAsk(sdk, first.connect()))
    const answer = await loopback.allowedBy(visitor, storage.requests[0] ?? '')
    await first.transport.finishAuth(answer.get('code') ?? '', answer.get('iss') ?? undefined)
    const { client, connect } = start(sdk, storage)
    await connect()
    t.match(await client.callTool(LIST), { content: [] })

    await visitor.open(site.url)
    t.equal((await visitor.post('/auth/logout', { everywhere: true })).ok, true)
    t.ok(await mustAsk(sdk, client.callTool(LIST)))
    t.equal(storage.requests.length, 2)
    await client.close()
  })
}

t.test('a client of SDK 2.x refuses an answer with the name of another issuer', async t => {
  const storage = new Storage(loopback.redirectUri)
  const { transport, connect } = start(SDKS['2.x'] as Sdk, storage)
  await t.rejects(connect(), next.UnauthorizedError)
  const answer = await loopback.allowedBy(ada, storage.requests[0] ?? '')

  await t.rejects(transport.finishAuth(answer.get('code') ?? '', 'https://elsewhere.example'), { name: /Mismatch/ })
  t.equal(storage.saved, undefined)
})
