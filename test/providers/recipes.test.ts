/** The providers that docs/providers.md sets up without a class of the package: its very settings and code, against stand-ins. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DiscordProvider } from '../../examples/discord-provider.js'
import { LinkedInProvider } from '../../examples/linkedin-provider.js'
import { SlackProvider } from '../../examples/slack-provider.js'
import { TwitchProvider } from '../../examples/twitch-provider.js'
import { XProvider } from '../../examples/x-provider.js'
import { type ExternalProvider, type ProviderOptions, providersFromEnv } from '../../lib/index.js'
import { DiscordStandIn } from '../fakes/discord.js'
import { LinkedInStandIn } from '../fakes/linkedin.js'
import { PRESETS, type Preset, PresetStandIn } from '../fakes/presets.js'
import type { StandIn } from '../fakes/stand-in.js'
import { XStandIn } from '../fakes/x.js'
import { Browser } from '../helpers/browser.js'
import { Documentation } from '../helpers/markdown.js'
import { BASE_URL, appWith, checksFor, failurePage, signIn } from './contract.js'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = (await Documentation.read()).page('docs/providers.md')

interface Recipe<S extends StandIn = StandIn> {
  start: (t: Test) => Promise<S>
  provider: (standIn: S, options?: Partial<ProviderOptions>) => ExternalProvider
  claims: Record<string, unknown>
  subject: string
  /** The requests of a first sign-in besides that for the discovery document. */
  requests: readonly string[]
}

/** The settings that a section of the page has, with the client of the stand-in. */
function settingsOf (heading: string, { clientId, clientSecret }: StandIn): Record<string, string> {
  const [block = ''] = PAGE.section(heading).blocks('sh')
  return Object.fromEntries(Array.from(block.matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name = '', value = '']) => {
    const given = name.endsWith('_CLIENT_ID') ? clientId : name.endsWith('_CLIENT_SECRET') ? clientSecret : value
    return [name, given]
  }))
}

/** The provider that the settings of a section make, with a stand-in behind it. */
function providerOf (heading: string, standIn: StandIn, changes: Record<string, string> = {}): ExternalProvider {
  const { fetch } = globalThis
  globalThis.fetch = standIn.fetch
  try {
    const [provider, ...others] = providersFromEnv({ ...settingsOf(heading, standIn), ...changes })
    if (provider === undefined || others.length > 0) throw new Error(`${heading} makes no provider`)
    return provider
  } finally {
    globalThis.fetch = fetch
  }
}

const preset = (heading: string, expected: Pick<Recipe, 'claims' | 'subject' | 'requests'>): Recipe<PresetStandIn> => {
  const kind: Preset = PRESETS[heading.toLowerCase() as keyof typeof PRESETS]
  const secret = `${heading.toUpperCase()}_CLIENT_SECRET`
  return {
    start: async t => new PresetStandIn(kind).start(t),
    provider: (standIn, { clientSecret } = {}) => providerOf(heading, standIn, clientSecret === undefined ? {} : { [secret]: clientSecret }),
    ...expected
  }
}

const clientOf = ({ clientId, clientSecret, fetch }: StandIn) => ({ clientId, clientSecret, fetch })
const slackOf = (standIn: StandIn) => ({ ...clientOf(standIn), team: 'T0123ABCD' })
const MARY = { email: 'mary@example.com', email_verified: true, name: 'Mary Example' }

const RECIPES: Record<string, Recipe<any>> = {
  GitLab: preset('GitLab', {
    subject: '4711',
    claims: { ...MARY, sub: '4711', picture: 'https://gitlab.com/uploads/-/system/user/avatar/4711/avatar.png' },
    requests: ['POST gitlab.com/oauth/token', 'GET gitlab.com/oauth/discovery/keys', 'GET gitlab.com/oauth/userinfo']
  }),
  Keycloak: preset('Keycloak', {
    subject: '6a3f0d5e-5a0f-4b58-8f2c-6f3c6d3c9f10',
    claims: { ...MARY, sub: '6a3f0d5e-5a0f-4b58-8f2c-6f3c6d3c9f10' },
    requests: ['token', 'certs', 'userinfo'].map((path, index) =>
      `${index === 0 ? 'POST' : 'GET'} id.example/realms/main/protocol/openid-connect/${path}`)
  }),
  Okta: preset('Okta', {
    subject: '00u1a2b3c4D5e6F7g8h9',
    claims: { ...MARY, sub: '00u1a2b3c4D5e6F7g8h9' },
    requests: ['POST example.okta.com/oauth2/v1/token', 'GET example.okta.com/oauth2/v1/keys', 'GET example.okta.com/oauth2/v1/userinfo']
  }),
  Cognito: preset('Cognito', {
    subject: '13d4c8d2-4021-7056-1c1f-5b2f0e0d9c12',
    claims: { ...MARY, sub: '13d4c8d2-4021-7056-1c1f-5b2f0e0d9c12' },
    requests: [
      'POST shop.auth.eu-central-1.amazoncognito.com/oauth2/token',
      'GET cognito-idp.eu-central-1.amazonaws.com/eu-central-1_a1B2c3D4e/.well-known/jwks.json',
      'GET shop.auth.eu-central-1.amazoncognito.com/oauth2/userInfo'
    ]
  }),
  Slack: {
    start: async t => new PresetStandIn(PRESETS.slack).start(t),
    provider: (standIn, options) => new SlackProvider({ ...slackOf(standIn), ...options }),
    subject: 'U0R7JM',
    claims: { ...MARY, sub: 'U0R7JM', picture: 'https://secure.gravatar.com/avatar/mary.png' },
    requests: ['POST slack.com/api/openid.connect.token', 'GET slack.com/openid/connect/keys']
  },
  Twitch: {
    start: async t => new PresetStandIn(PRESETS.twitch).start(t),
    provider: (standIn, options) => new TwitchProvider({ ...clientOf(standIn), ...options }),
    subject: '713936733',
    claims: { ...MARY, name: 'MaryExample', sub: '713936733', picture: 'https://static-cdn.jtvnw.net/jtv_user_pictures/mary-300x300.png' },
    requests: ['POST id.twitch.tv/oauth2/token', 'GET id.twitch.tv/oauth2/keys']
  },
  Discord: {
    start: async t => new DiscordStandIn().start(t),
    provider: (standIn, options) => new DiscordProvider({ ...clientOf(standIn), ...options }),
    subject: '80351110224678912',
    claims: {
      sub: '80351110224678912',
      name: 'nelly',
      email: 'nelly@example.com',
      picture: 'https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png'
    },
    requests: ['POST discord.com/api/oauth2/token', 'GET discord.com/api/users/@me']
  },
  LinkedIn: {
    start: async t => new LinkedInStandIn().start(t),
    provider: (standIn, options) => new LinkedInProvider({ ...clientOf(standIn), ...options }),
    subject: '782bbtaQ',
    claims: {
      sub: '782bbtaQ',
      name: 'Mary Example',
      email: 'mary@example.com',
      picture: 'https://media.licdn-ei.com/dms/image/C5F03AQHqK8v7tB1HCQ/profile-displayphoto-shrink_100_100/0/'
    },
    requests: ['POST www.linkedin.com/oauth/v2/accessToken', 'GET api.linkedin.com/v2/userinfo']
  },
  X: {
    start: async t => new XStandIn().start(t),
    provider: (standIn, options) => new XProvider({ ...clientOf(standIn), ...options }),
    subject: '2244994945',
    claims: {
      sub: '2244994945', name: 'Mary', login: 'mary_example', email: 'mary@example.com', picture: 'https://pbs.twimg.com/profile_images/1/mary_normal.jpg'
    },
    requests: ['POST api.x.com/2/oauth2/token', 'GET api.x.com/2/users/me']
  }
}

for (const [heading, { start, provider, claims, subject, requests }] of Object.entries(RECIPES)) {
  const name = heading.toLowerCase()

  t.test(`users sign in with ${heading}, with what its section says`, async t => {
    const standIn = await start(t)
    const { app, browser } = await appWith(t, provider(standIn))

    t.equal((await signIn(browser, standIn, name)).headers.location, '/')
    const { principal } = (await browser.get('/me')).json()
    t.equal(principal.provider, name)
    t.strictSame(principal.claims, claims)
    t.match(await app.auth.findUser({ provider: name, subject }), { userId: principal.userId, email: claims.email, emailVerified: true })
    t.strictSame(standIn.backChannelRequests().filter((request: string) => !request.endsWith('openid-configuration')), requests)

    const again = new Browser(app)
    await signIn(again, standIn, name)
    t.equal((await again.get('/me')).json().principal.userId, principal.userId, 'the next sign-in is the same user')
    t.match(PAGE.section(heading).text, `\`{baseUrl}/auth/${name}/callback\``)
  })

  t.test(`a sign-in with ${heading} that fails says so`, async t => {
    const standIn = await start(t)
    standIn.consents = false
    const { app, browser } = await appWith(t, provider(standIn))
    t.equal((await signIn(browser, standIn, name)).headers.location, failurePage('access_denied'), 'the user declines')
    standIn.consents = true
    standIn.codesExpire = true
    t.equal((await signIn(browser, standIn, name)).headers.location, failurePage('provider_error'), 'the code has expired')

    const { app: other, lines } = await appWith(t, provider(standIn, { clientSecret: 'not-the-secret' }))
    t.equal((await signIn(new Browser(other), standIn, name)).headers.location, failurePage('provider_error'), 'the secret is wrong')
    t.match(lines.join(''), name === 'twitch' ? /status 403/ : /clientSecret/)
    t.notMatch(lines.join(''), /not-the-secret/)
    t.equal((await browser.get('/me')).json().principal, null)
    t.equal(app.authProviders.length, 1)
  })

  t.test(`attack 117: an answer of ${heading} signs in the browser that asked for it, once`, async t => {
    const standIn = await start(t)
    const { app, browser } = await appWith(t, provider(standIn))
    const other = new Browser(app)
    const [mine, theirs] = await Promise.all([browser, other].map(async browser => {
      const { headers: { location = '' } } = await browser.get(`/auth/${name}/login`)
      return new URL(await standIn.authorize(location), BASE_URL)
    }))
    const code = async (browser: Browser, { pathname, search }: URL) => {
      const answer = await browser.get(pathname + search, { accept: 'application/json' })
      return answer.headers.location ?? answer.json().code
    }
    const without = (parameter: string, url = new URL(String(mine))) => { url.searchParams.delete(parameter); return url }

    t.equal(await code(browser, theirs ?? fail()), 'invalid_state', 'of another session')
    t.equal(await code(new Browser(app), mine ?? fail()), 'invalid_state', 'in another browser')
    t.equal(await code(browser, without('state')), 'invalid_state', 'without state')
    t.equal((await browser.get('/me')).json().principal, null)
    t.equal(await code(browser, mine ?? fail()), '/')
    t.equal(await code(browser, mine ?? fail()), 'invalid_state', 'once more')
  })
}

function fail (): never {
  throw new Error('there is no answer')
}

t.test('LinkedIn and Slack get neither challenge nor verifier, and refuse them; the others get both', async t => {
  for (const [heading, { start, provider }] of Object.entries(RECIPES)) {
    const isWithout = heading === 'LinkedIn' || heading === 'Slack'
    const standIn = await start(t)
    const name = heading.toLowerCase()
    const { browser } = await appWith(t, provider(standIn))
    await signIn(browser, standIn, name)
    const sent = standIn.requests.some(({ query, form }: { query: URLSearchParams, form: URLSearchParams }) =>
      query.has('code_challenge') || query.has('code_challenge_method') || form.has('code_verifier'))
    t.equal(sent, !isWithout, heading)
  }
  class Careless extends LinkedInProvider {
    constructor (options: ProviderOptions) { super({ ...options, withoutPkce: false } as ProviderOptions) }
  }
  const linkedin = await new LinkedInStandIn().start(t)
  const { browser } = await appWith(t, new Careless(clientOf(linkedin)))
  t.equal((await signIn(browser, linkedin, 'linkedin')).headers.location, failurePage('provider_error'))
})

t.test('an ID token of a provider without PKCE still has the nonce of its request', async t => {
  const slack = await new PresetStandIn(PRESETS.slack).start(t)
  const provider = new SlackProvider(slackOf(slack))
  const checks = checksFor('slack')
  const { search } = new URL(await slack.authorize((await provider.authorizationUrl(checks)).href), BASE_URL)

  await t.rejects(provider.authenticate({ ...checks, nonce: 'm'.repeat(43), parameters: new URLSearchParams(search) }), { code: 'provider_error' })
})

t.test('a member of another workspace of Slack is refused, whatever the URLs say', async t => {
  const slack = await new PresetStandIn(PRESETS.slack).start(t)
  const { browser } = await appWith(t, new SlackProvider({ ...slackOf(slack), authorizationParams: { team: 'T9' } }))
  const { headers: { location = '' } } = await browser.get('/auth/slack/login?team=T9')
  t.strictSame(new URL(location).searchParams.getAll('team'), ['T0123ABCD'])
  for (const team of ['T9', undefined, '', 7, ['T0123ABCD']]) {
    slack.profile['https://slack.com/team_id'] = team
    t.equal((await signIn(browser, slack, 'slack')).headers.location, failurePage('not_allowed'), JSON.stringify(team) ?? 'absent')
  }
})

t.test('users whose address is not verified, or not there, sign in and join no account', async t => {
  const linkedin = await new LinkedInStandIn().start(t)
  const x = await new XStandIn().start(t)
  linkedin.user.email_verified = false
  delete x.user.confirmed_email
  for (const [provider, standIn] of [[new LinkedInProvider(clientOf(linkedin)), linkedin], [new XProvider(clientOf(x)), x]] as const) {
    const { app, browser } = await appWith(t, provider)
    t.equal((await signIn(browser, standIn, provider.name)).headers.location, '/')
    const { userId } = (await browser.get('/me')).json().principal
    t.match(await app.auth.findUser({ userId }), { email: null, emailVerified: false })
  }
})

t.test('the list of scopes that Twitch sends is the scope of the tokens', async t => {
  const twitch = await new PresetStandIn(PRESETS.twitch).start(t)
  const provider = new TwitchProvider(clientOf(twitch))
  const checks = checksFor('twitch')
  const { search } = new URL(await twitch.authorize((await provider.authorizationUrl(checks)).href), BASE_URL)
  t.match(await provider.authenticate({ ...checks, parameters: new URLSearchParams(search) }), { tokens: { scope: 'openid user:read:email' } })
})

t.test('the page shows the very code of the examples, of 25 lines or so', async t => {
  for (const heading of ['Slack', 'LinkedIn', 'Twitch', 'X']) {
    const source = await readFile(join(ROOT, `examples/${heading.toLowerCase()}-provider.ts`), 'utf8')
    t.strictSame(PAGE.section(heading).blocks('ts'), [source])
    t.ok(source.split('\n').length <= 28, heading)
  }
})
