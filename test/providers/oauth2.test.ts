import { createServer } from 'node:http'
import t from 'tap'
import { OAuth2Provider, type OAuth2ProviderOptions, type ProviderApi, type UncheckedIdentity } from '../../lib/index.js'
import { listen } from '../helpers/loopback.js'
import { checksFor } from './contract.js'

const CHECKS = checksFor('small')

class SmallProvider extends OAuth2Provider {
  constructor (options: Partial<OAuth2ProviderOptions> = {}) {
    super({
      name: 'small',
      clientId: 'id',
      clientSecret: 'secret',
      authorizationEndpoint: 'https://small.example/authorize',
      tokenEndpoint: 'https://small.example/token',
      ...options
    })
  }

  protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
    const { id } = await api.get('https://small.example/me', { 'x-version': '7' })
    return { subject: id, claims: {}, emailVerified: false }
  }
}

/** Answers the token request and the one for the person. */
function answering (person: Response): typeof fetch {
  return async (url) => String(url).endsWith('/token') ? Response.json({ access_token: 'a', token_type: 'bearer' }) : person
}

t.test('options are checked at construction', async t => {
  const wrong: Array<[Partial<OAuth2ProviderOptions>, RegExp]> = [
    [{ authorizationEndpoint: 'http://small.example/authorize' }, /small: authorizationEndpoint must be an https: URL/],
    [{ tokenEndpoint: 'small.example' }, /small: tokenEndpoint must be an https: URL/],
    [{ tokenEndpoint: 'ftp://small.example', allowInsecureRequests: true }, /small: tokenEndpoint/],
    [{ clientId: '' }, /small: clientId/],
    [{ clientAuthentication: 'none' as never }, /small: clientAuthentication must be 'client_secret_basic' or 'client_secret_post'/],
    [{ wrong: 1 } as never, /small has no option "wrong"/]
  ]
  for (const [change, message] of wrong) t.throws(() => new SmallProvider(change), { code: 'invalid_options', message })
})

t.test('without scopes the parameter is left out, and so is a nonce', async t => {
  const url = await new SmallProvider().authorizationUrl(CHECKS)
  t.strictSame([...url.searchParams.keys()].sort(), ['client_id', 'code_challenge', 'code_challenge_method', 'redirect_uri', 'response_type', 'state'])
})

t.test('the client says who it is as the provider wants it', async t => {
  for (const [clientAuthentication, expected] of [
    [undefined, ['id', 'secret', null]],
    ['client_secret_post', ['id', 'secret', null]],
    ['client_secret_basic', [null, null, `Basic ${btoa('id:secret')}`]]
  ] as const) {
    const sent: Array<string | null> = []
    const fetch: typeof globalThis.fetch = async (url, init) => {
      if (String(url).endsWith('/token')) {
        const form = new URLSearchParams(String(init?.body))
        sent.push(form.get('client_id'), form.get('client_secret'), new Headers(init?.headers).get('authorization'))
      }
      return answering(Response.json({ id: 'ada' }))(url, init)
    }
    const provider = new SmallProvider({ fetch, ...(clientAuthentication !== undefined && { clientAuthentication }) })
    await provider.authenticate({ ...CHECKS, parameters: new URLSearchParams({ code: 'c', state: CHECKS.state }) })
    t.strictSame(sent, expected)
  }
})

t.test('an answer that does not conform is made into one that does, however it is read', async t => {
  const ways: Array<(answer: Response) => Response | Promise<Response>> = [
    answer => new Response(answer.body, { status: 400, headers: { 'content-type': 'application/json' } }),
    async answer => new Response(await answer.arrayBuffer(), { status: 400, headers: { 'content-type': 'application/json' } }),
    async answer => Response.json(await answer.clone().json(), { status: 400 })
  ]
  for (const conform of ways) {
    const provider = new SmallProvider({ conform, fetch: async () => Response.json({ error: 'invalid_grant' }) })
    const attempt = provider.authenticate({ ...CHECKS, parameters: new URLSearchParams({ code: 'c', state: CHECKS.state }) })
    await t.rejects(attempt, { code: 'provider_error', cause: { isEveryday: true, message: /invalid_grant/ } })
  }
})

t.test('headers of a request to the API take the place of the usual ones, in any spelling', async t => {
  class Particular extends SmallProvider {
    protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
      const { id } = await api.get('https://small.example/me', { Accept: 'application/vnd.small+json', 'User-Agent': 'mine' })
      return { subject: id, claims: {}, emailVerified: false }
    }
  }
  const seen: Headers[] = []
  const fetch: typeof globalThis.fetch = async (url, init) => {
    seen.push(new Headers(init?.headers))
    return answering(Response.json({ id: 'ada' }))(url, init)
  }
  await new Particular({ fetch }).authenticate({ ...CHECKS, parameters: new URLSearchParams({ code: 'c', state: CHECKS.state }) })
  const [, me] = seen
  t.strictSame([me?.get('accept'), me?.get('user-agent')], ['application/vnd.small+json', 'mine'])
})

t.test('a development server on this machine may speak plain http', async t => {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(
      request.url === '/token' ? { access_token: 'a', token_type: 'bearer' } : { id: 'ada' }
    ))
  })
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  class Local extends SmallProvider {
    protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
      const { id } = await api.get(`${origin}/me`)
      return { subject: id, claims: {}, emailVerified: false }
    }
  }
  const provider = new Local({ authorizationEndpoint: `${origin}/authorize`, tokenEndpoint: `${origin}/token`, allowInsecureRequests: true })
  const parameters = new URLSearchParams({ code: 'c', state: CHECKS.state })

  t.match(await provider.authenticate({ ...CHECKS, parameters }), { identity: { subject: 'ada', claims: { sub: 'ada' } }, tokens: { accessToken: 'a' } })
})

t.test('a token goes to no plain http unless that is permitted', async t => {
  class Careless extends SmallProvider {
    protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
      const { id } = await api.get('http://small.example/me')
      return { subject: id, claims: {}, emailVerified: false }
    }
  }
  const provider = new Careless({ fetch: answering(Response.json({ id: 'ada' })) })
  await t.rejects(provider.authenticate({ ...CHECKS, parameters: new URLSearchParams({ code: 'c', state: CHECKS.state }) }), { code: 'provider_error' })
})

t.test('an answer that does not tell who the user is does not sign in', async t => {
  for (const id of [undefined, null, '', 7, ['ada'], 'a'.repeat(256), 'ada\0']) {
    const provider = new SmallProvider({ fetch: answering(Response.json({ id })) })
    await t.rejects(
      provider.authenticate({ ...CHECKS, parameters: new URLSearchParams({ code: 'c', state: CHECKS.state }) }),
      { code: 'provider_error' },
      JSON.stringify(id)
    )
  }
})

t.test('the log names the endpoint that failed, without its query', async t => {
  class ProofProvider extends SmallProvider {
    protected override async identify (api: ProviderApi): Promise<UncheckedIdentity> {
      await api.getList('https://small.example/emails?proof=secret')
      return super.identify(api)
    }
  }
  const parameters = new URLSearchParams({ code: 'c', state: CHECKS.state })
  for (const path of ['token', 'me', 'emails']) {
    for (const failed of [() => new Response('no', { status: 500 }), () => Response.json('no'), () => { throw new TypeError('fetch failed') }]) {
      const fetch: typeof globalThis.fetch = async url => {
        const { pathname } = new URL(String(url))
        if (pathname === `/${path}`) return failed()
        return Response.json(pathname === '/emails' ? [] : { id: '1', access_token: 'a', token_type: 'bearer' })
      }
      const attempt = new ProofProvider({ fetch }).authenticate({ ...CHECKS, parameters })
      await t.rejects(attempt, { cause: { endpoint: `https://small.example/${path}` } }, path)
    }
  }
})

t.test('the reason that an API gives is kept for the log, without its other members', async t => {
  const cases: Array<[Response, RegExp]> = [
    [Response.json({ error: 'invalid_token', error_description: 'it has\r\nexpired' }, { status: 401 }), /status 401: invalid_token: it has expired$/],
    [Response.json({ message: 'Bad credentials', secret: 'do not show' }, { status: 401 }), /status 401: Bad credentials$/],
    [Response.json({ error: { id: 7 } }, { status: 400 }), /status 400$/],
    [new Response('<h1>do not show</h1>', { status: 404 }), /status 404$/]
  ]
  for (const [answer, message] of cases) {
    const provider = new SmallProvider({ fetch: answering(answer) })
    await t.rejects(
      provider.authenticate({ ...CHECKS, parameters: new URLSearchParams({ code: 'c', state: CHECKS.state }) }),
      { code: 'provider_error', cause: { message } }
    )
  }
})

t.test('the iss of a response is that of the provider, or absent', async t => {
  for (const [issuer, iss, isRight] of [
    [undefined, null, true], [undefined, 'https://small.example', true], [undefined, 'https://evil.example', false], [undefined, '', false],
    ['https://small.example/oauth', 'https://small.example/oauth', true], ['https://small.example/oauth', 'https://small.example', false]
  ] as const) {
    const provider = new SmallProvider({ fetch: answering(Response.json({ id: 'ada' })), ...(issuer !== undefined && { issuer }) })
    const parameters = new URLSearchParams({ code: 'c', state: CHECKS.state, ...(iss !== null && { iss }) })
    const attempt = provider.authenticate({ ...CHECKS, parameters })
    if (isRight) t.equal((await attempt).identity.subject, 'ada')
    else await t.rejects(attempt, { code: 'provider_error' }, `${issuer} ${iss}`)
  }
})
