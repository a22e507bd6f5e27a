/** The SDKs of MCP as clients that are known by a document, which the server fetches: a server of this machine passes for the internet. */
import * as next from '@modelcontextprotocol/client'
import { auth } from '@modelcontextprotocol/sdk/client/auth.js'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { HTML, ISSUER, RESOURCE, answerOf, ask, decide, signedIn, startServer } from '../helpers/oauth-app.js'
import { publicHost, replaceInternet } from '../helpers/public-host.js'

const REDIRECT = 'http://127.0.0.1:8123/callback'

/** What a client stores, with the URL of its document. */
class Storage {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata = { redirect_uris: [REDIRECT] }
  readonly clientMetadataUrl: string
  request: URL | undefined
  information: { client_id: string } | undefined
  saved: { access_token: string, token_type: string } | undefined
  #verifier = ''

  constructor (document: string) {
    this.clientMetadataUrl = document
  }

  clientInformation () { return this.information }
  saveClientInformation (information: { client_id: string }) { this.information = information }
  tokens () { return this.saved }
  saveTokens (tokens: NonNullable<Storage['saved']>) { this.saved = tokens }
  redirectToAuthorization (url: URL) { this.request = url }
  saveCodeVerifier (verifier: string) { this.#verifier = verifier }
  codeVerifier () { return this.#verifier }
}

/** `fetch`, to an application that does not listen. */
function fetchOf (app: FastifyInstance): typeof fetch {
  return async (url, { method = 'GET', headers, body } = {}) => {
    const { statusCode, headers: answered, body: text } = await app.inject({
      method: method as 'GET',
      url: String(url).slice(ISSUER.length),
      headers: Object.fromEntries(new Headers(headers)),
      ...(body != null && { payload: String(body) })
    })
    return new Response(text, { status: statusCode, headers: answered as Record<string, string> })
  }
}

for (const [version, authorize] of Object.entries({ '1.x': auth, '2.x': next.auth })) {
  t.test(`SDK ${version}: a client is known by its document, and registers nothing`, async t => {
    const host = await publicHost(t, (_request, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({
        client_id: `${host.origin}/client.json`,
        client_name: 'Assistant of the internet',
        redirect_uris: ['http://127.0.0.1/callback'],
        token_endpoint_auth_method: 'none'
      }))
    })
    replaceInternet(t, host.network)
    const app = await startServer(t, { registration: true })
    const browser = await signedIn(app)
    const storage = new Storage(`${host.origin}/client.json`)
    const fetchFn = fetchOf(app)
    const step = async (more = {}) => authorize(storage as never, { serverUrl: RESOURCE, fetchFn, ...more } as never)

    t.equal(await step(), 'REDIRECT')
    t.equal(storage.request?.searchParams.get('client_id'), storage.clientMetadataUrl)
    t.strictSame(host.resolved, [], 'nothing is fetched before a user asks')
    const page = await browser.get(String(storage.request).slice(ISSUER.length), HTML)
    t.match(page.body, /Assistant of the internet/)
    t.match(page.body, /client\.example/)
    const answer = answerOf(await decide(browser, page))
    t.equal(await step({ authorizationCode: answer.get('code'), iss: answer.get('iss') }), 'AUTHORIZED')

    t.equal((await ask(app, storage.saved?.access_token ?? '')).statusCode, 200)
  })
}
