import Fastify from 'fastify'
import authPlugin, {
  AppleProvider, type AppleProviderOptions,
  Auth0Provider, type Auth0ProviderOptions, AuthError, type AuthorizationRequest, type AuthorizationResponse,
  type EndSessionRequest, type ExternalProvider, FacebookProvider, type FacebookProviderOptions, GitHubProvider, type GitHubProviderOptions,
  GoogleProvider, type GoogleProviderOptions, type Identity, type LogoutToken, MicrosoftProvider, type MicrosoftProviderOptions,
  OAuth2Provider, type OAuth2ProviderOptions, OidcProvider, type OidcProfile, type OidcProviderOptions,
  type ProviderApi, type ProviderOptions, type ProviderTokens, providersFromEnv, type UncheckedIdentity
} from 'fastify-svc-auth'
import type { JWK } from 'jose'
import { describe, expect, test } from 'tstyche'
import type { ClientAuthentication, SignInParameters } from '../../lib/providers/provider.js'

const client = { clientId: 'id', clientSecret: 'secret' }
const oidc = { ...client, name: 'company', discoveryUrl: 'https://id.example/.well-known/openid-configuration' }
const oauth2 = { ...client, name: 'forge', authorizationEndpoint: 'https://forge.example/authorize', tokenEndpoint: 'https://forge.example/token' }

/** The names of the options without which a provider cannot be made. */
type RequiredOptions<O> = { [N in keyof O]-?: object extends Pick<O, N> ? never : N }[keyof O]

describe('every provider', () => {
  test('needs client id and secret, and each class what else it cannot know', () => {
    expect<RequiredOptions<ProviderOptions>>().type.toBe<'clientId' | 'clientSecret'>()
    expect<RequiredOptions<GoogleProviderOptions>>().type.toBe<'clientId' | 'clientSecret'>()
    expect<RequiredOptions<GitHubProviderOptions>>().type.toBe<'clientId' | 'clientSecret'>()
    expect<RequiredOptions<MicrosoftProviderOptions>>().type.toBe<'clientId' | 'clientSecret' | 'clientKey'>()
    expect<RequiredOptions<AppleProviderOptions>>().type.toBe<'clientId' | 'teamId' | 'keyId' | 'privateKey'>()
    expect<RequiredOptions<FacebookProviderOptions>>().type.toBe<'clientId' | 'clientSecret'>()
    expect<RequiredOptions<Auth0ProviderOptions>>().type.toBe<'clientId' | 'clientSecret' | 'clientKey' | 'domain'>()
    expect<RequiredOptions<OidcProviderOptions>>().type.toBe<'clientId' | 'clientSecret' | 'clientKey' | 'name' | 'discoveryUrl'>()
    expect<RequiredOptions<OAuth2ProviderOptions>>().type.toBe<'clientId' | 'clientSecret' | 'name' | 'authorizationEndpoint' | 'tokenEndpoint'>()
  })

  test('takes the common options', () => {
    const common: ProviderOptions = { ...client, scopes: ['openid'], authorizationParams: { prompt: 'login' }, timeout: 1000, fetch }
    expect(GoogleProvider).type.toBeConstructableWith(common)
    expect(GitHubProvider).type.toBeConstructableWith(common)
    expect(MicrosoftProvider).type.toBeConstructableWith(common)
    expect(FacebookProvider).type.toBeConstructableWith(common)
    expect(Auth0Provider).type.toBeConstructableWith({ ...common, domain: 'tenant.example' })
    expect(OidcProvider).type.toBeConstructableWith({ ...common, ...oidc })
  })

  test('takes signOut where its provider has an endpoint for it', () => {
    expect(OidcProvider).type.toBeConstructableWith({ ...oidc, signOut: true })
    expect(Auth0Provider).type.toBeConstructableWith({ ...client, domain: 'tenant.example', signOut: true })
    expect(MicrosoftProvider).type.toBeConstructableWith({ ...client, signOut: undefined })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, signOut: 'true' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, signOut: true })
    expect(GitHubProvider).type.not.toBeConstructableWith({ ...client, signOut: true })
    expect(FacebookProvider).type.not.toBeConstructableWith({ ...client, signOut: true })
    expect<OidcProvider>().type.toBeAssignableTo<Required<Pick<ExternalProvider, 'signOut' | 'endSessionUrl'>>>()
    expect<(request: EndSessionRequest) => Promise<URL | null>>().type.toBe<NonNullable<ExternalProvider['endSessionUrl']>>()
    expect<EndSessionRequest>().type.toBeAssignableFrom<{ redirectUri: string, state: string }>()
  })

  test('takes backChannelLogout where its provider sends logout tokens', () => {
    expect(OidcProvider).type.toBeConstructableWith({ ...oidc, backChannelLogout: true, acceptUntypedLogoutTokens: true })
    expect(Auth0Provider).type.toBeConstructableWith({ ...client, domain: 'tenant.example', backChannelLogout: undefined })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, backChannelLogout: 'true' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, backChannelLogout: true })
    expect(MicrosoftProvider).type.not.toBeConstructableWith({ ...client, backChannelLogout: true })
    expect<OidcProvider>().type.toBeAssignableTo<Required<Pick<ExternalProvider, 'backChannelLogout' | 'verifyLogoutToken'>>>()
    expect<(token: string) => Promise<LogoutToken>>().type.toBe<NonNullable<ExternalProvider['verifyLogoutToken']>>()
    expect<LogoutToken>().type.toBe<{ jti: string, sid?: string, sub?: string }>()
  })

  test('checks the types of the common options', () => {
    expect<ProviderOptions>().type.toBeAssignableFrom<{ clientId: string, clientSecret: string, scopes: readonly string[] }>()
    expect(GoogleProvider).type.not.toBeConstructableWith()
    expect(GoogleProvider).type.not.toBeConstructableWith({ clientId: 'id' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, clientSecret: process.env.GOOGLE_CLIENT_SECRET })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, scopes: 'openid email' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, authorizationParams: { max_age: 60 } })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, timeout: '5s' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, fetch: 'https://proxy.example' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, client_id: 'id' })
  })

  test('is an ExternalProvider with a name', () => {
    expect<GoogleProvider>().type.toBeAssignableTo<ExternalProvider>()
    expect<GitHubProvider>().type.toBeAssignableTo<ExternalProvider>()
    expect<MicrosoftProvider>().type.toBeAssignableTo<ExternalProvider>()
    expect<FacebookProvider>().type.toBeAssignableTo<ExternalProvider>()
    expect<Auth0Provider>().type.toBeAssignableTo<ExternalProvider>()
    expect<OidcProvider>().type.toBeAssignableTo<ExternalProvider>()
    expect<OAuth2Provider>().type.toBeAssignableTo<ExternalProvider>()
    expect(new GoogleProvider(client).name).type.toBe<string>()
    expect(() => { new GoogleProvider(client).name = 'other' }).type.toRaiseError('read-only')
  })
})

describe('the provider class', () => {
  test('GoogleProvider takes a hosted domain', () => {
    expect(GoogleProvider).type.toBeConstructableWith({ ...client, hostedDomain: 'example.com' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, hostedDomain: ['example.com'] })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, discoveryUrl: 'https://id.example' })
    expect<GoogleProvider>().type.toBeAssignableTo<OidcProvider>()
  })

  test('GitHubProvider takes the URL of an Enterprise Server', () => {
    expect(GitHubProvider).type.toBeConstructableWith({ ...client, baseUrl: 'https://github.example.com' })
    expect(GitHubProvider).type.not.toBeConstructableWith({ ...client, baseUrl: new URL('https://github.example.com') })
    expect(GitHubProvider).type.not.toBeConstructableWith({ ...client, allowInsecureRequests: true })
    expect<GitHubProvider>().type.toBeAssignableTo<OAuth2Provider>()
  })

  test('MicrosoftProvider takes a tenant and the host of a national cloud', () => {
    expect(MicrosoftProvider).type.toBeConstructableWith({ ...client, tenant: 'organizations', baseUrl: 'https://login.microsoftonline.us' })
    expect(MicrosoftProvider).type.not.toBeConstructableWith({ ...client, tenant: 1 })
    expect(MicrosoftProvider).type.not.toBeConstructableWith({ ...client, baseUrl: true })
    expect(MicrosoftProvider).type.not.toBeConstructableWith({ ...client, domain: 'tenant.example' })
    expect<MicrosoftProvider>().type.toBeAssignableTo<OidcProvider>()
  })

  test('FacebookProvider takes a version of the Graph API', () => {
    expect(FacebookProvider).type.toBeConstructableWith({ ...client, graphVersion: 'v24.0' })
    expect(FacebookProvider).type.not.toBeConstructableWith({ ...client, graphVersion: 24 })
    expect(FacebookProvider).type.not.toBeConstructableWith({ ...client, tenant: 'common' })
    expect<FacebookProvider>().type.toBeAssignableTo<OAuth2Provider>()
  })

  test('Auth0Provider needs a domain', () => {
    expect(Auth0Provider).type.toBeConstructableWith({ ...client, domain: 'tenant.example' })
    expect(Auth0Provider).type.toBeConstructableWith({ ...client, domain: 'localhost:4000', allowInsecureRequests: true })
    expect(Auth0Provider).type.not.toBeConstructableWith(client)
    expect(Auth0Provider).type.not.toBeConstructableWith({ ...client, domain: undefined })
    expect(Auth0Provider).type.not.toBeConstructableWith({ ...client, domain: 'localhost:4000', allowInsecureRequests: 'yes' })
    expect(Auth0Provider).type.not.toBeConstructableWith({ ...client, domain: 'tenant.example', name: 'other' })
    expect<Auth0Provider>().type.toBeAssignableTo<OidcProvider>()
  })

  test('OidcProvider needs a name and a discovery URL', () => {
    expect(OidcProvider).type.toBeConstructableWith({ ...oidc, withoutPkce: true })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, withoutPkce: 'yes' })
    expect(OidcProvider).type.toBeConstructableWith(oidc)
    expect(OidcProvider).type.toBeConstructableWith({ ...oidc, issuer: 'https://id.example', userinfo: false, allowInsecureRequests: true })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...client, name: 'company' })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...client, discoveryUrl: oidc.discoveryUrl })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, discoveryUrl: new URL(oidc.discoveryUrl) })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, issuer: ['https://id.example'] })
    expect(OidcProvider).type.toBeConstructableWith({ ...oidc, pushedAuthorizationRequests: true })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, userinfo: 'https://id.example/userinfo' })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, allowInsecureRequests: 1 })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, discoveryURL: oidc.discoveryUrl })
  })

  test('AppleProvider takes a key, or functions that return the present one', () => {
    const apple = { clientId: 'id', teamId: 'team', keyId: 'key', privateKey: 'pem' }
    expect(AppleProvider).type.toBeConstructableWith({ ...apple, scopes: ['openid', 'email'] })
    expect(AppleProvider).type.toBeConstructableWith({ ...apple, keyId: () => 'key', privateKey: () => 'pem' })
    expect(AppleProvider).type.not.toBeConstructableWith({ ...apple, clientSecret: 'secret' })
    expect(AppleProvider).type.not.toBeConstructableWith({ ...apple, privateKey: async () => 'pem' })
    expect(AppleProvider).type.not.toBeConstructableWith(client)
    expect<AppleProvider['responseMode']>().type.toBe<'form_post' | undefined>()
  })

  test('a client of an OpenID provider has a secret or a key, and not both or none', () => {
    const { clientSecret: _, ...bare } = oidc
    const clientKey: JWK = { kty: 'EC', alg: 'ES256' }
    for (const given of [clientKey, [clientKey], () => clientKey]) {
      expect(OidcProvider).type.toBeConstructableWith({ ...bare, clientKey: given, clientAuthentication: 'private_key_jwt' })
    }
    expect(OidcProvider).type.toBeConstructableWith({ ...bare, clientKey, assertionAudience: 'token_endpoint', responseMode: 'form_post' })
    expect(OidcProvider).type.toBeConstructableWith({ ...bare, clientSecret: async () => 'secret' })
    expect(MicrosoftProvider).type.toBeConstructableWith({ clientId: 'id', clientKey })
    expect(Auth0Provider).type.toBeConstructableWith({ clientId: 'id', clientKey, domain: 'tenant.example' })
    expect(OidcProvider).type.not.toBeConstructableWith(bare)
    expect(OidcProvider).type.not.toBeConstructableWith({ ...oidc, clientKey })
    expect(GoogleProvider).type.not.toBeConstructableWith({ clientId: 'id', clientKey })
    expect(OidcProvider).type.not.toBeConstructableWith({ ...bare, clientKey, responseMode: 'query' })
  })

  test('OAuth2Provider is for subclasses', () => {
    expect(() => new OAuth2Provider(oauth2)).type.toRaiseError('abstract class')
  })
})

describe('a subclass of OidcProvider', () => {
  test('says where its provider is, and how claims become an identity', () => {
    class CompanyProvider extends OidcProvider {
      constructor ({ region = 'eu', ...options }: ProviderOptions & { region?: 'eu' | 'us' }) {
        super({ name: 'company', discoveryUrl: `https://${region}.id.example/.well-known/openid-configuration`, ...options })
      }

      protected override identityOf (profile: OidcProfile, idToken: OidcProfile): UncheckedIdentity {
        expect(profile.sub).type.toBe<string>()
        expect(profile.department).type.toBe<unknown>()
        if (idToken.contractor === true) throw new AuthError('not_allowed')
        const identity = super.identityOf(profile, idToken)
        return { ...identity, claims: { ...identity.claims, department: profile.department } }
      }
    }
    expect(CompanyProvider).type.toBeConstructableWith({ ...client, region: 'us' })
    expect(CompanyProvider).type.not.toBeConstructableWith({ ...client, region: 'mars' })
    expect<CompanyProvider>().type.toBeAssignableTo<ExternalProvider>()
  })

  test('needs no more of the claims than it reads', () => {
    class ShortProvider extends OidcProvider {
      protected override identityOf ({ sub, mail }: OidcProfile): UncheckedIdentity {
        return { subject: sub, claims: { email: mail }, emailVerified: false }
      }
    }
    expect<ShortProvider>().type.toBeAssignableTo<OidcProvider>()
  })

  test('says explicitly whether the e-mail is verified', () => {
    class CarelessProvider extends OidcProvider {
      // @ts-expect-error Property 'identityOf' in type 'CarelessProvider' is not assignable to the same property in base type
      protected override identityOf ({ sub, email }: OidcProfile) {
        return { subject: sub, claims: { email } }
      }
    }
    expect<CarelessProvider>().type.toHaveProperty('name')
  })
})

describe('a subclass of OAuth2Provider', () => {
  test('says where its provider is, and asks its API who a token speaks for', () => {
    class ForgeProvider extends OAuth2Provider {
      constructor (options: ProviderOptions) {
        super({
          name: 'forge',
          authorizationEndpoint: 'https://forge.example/authorize',
          tokenEndpoint: 'https://forge.example/token',
          issuer: 'https://forge.example',
          clientAuthentication: 'client_secret_basic',
          allowInsecureRequests: false,
          withoutPkce: true,
          conform: answer => {
            expect(answer).type.toBe<Response>()
            return answer
          },
          ...options
        })
      }

      protected override async identify (api: ProviderApi, accessToken: string): Promise<UncheckedIdentity> {
        expect(accessToken).type.toBe<string>()
        const { id, mail } = await api.get('https://forge.example/me', { accept: 'application/json' })
        expect(id).type.toBe<unknown>()
        expect(api.getList('https://forge.example/mails')).type.toBe<Promise<unknown[] | null>>()
        expect(api.get).type.not.toBeCallableWith(new URL('https://forge.example/me'))
        return { subject: String(id), claims: { email: mail }, emailVerified: mail !== undefined }
      }
    }
    expect(ForgeProvider).type.toBeConstructableWith(client)
    expect<ForgeProvider>().type.toBeAssignableTo<ExternalProvider>()
  })

  test('must say that', () => {
    // @ts-expect-error does not implement inherited abstract member identify
    class NobodyProvider extends OAuth2Provider {}
    expect<NobodyProvider>().type.toHaveProperty('name')
  })

  test('chooses among the ways to authenticate that there are', () => {
    expect<OAuth2ProviderOptions['clientAuthentication']>().type.toBe<'client_secret_post' | 'client_secret_basic' | undefined>()
    expect<OidcProviderOptions['clientAuthentication']>().type.toBe<ClientAuthentication | 'private_key_jwt' | undefined>()
    expect(Auth0Provider).type.toBeConstructableWith({ ...client, domain: 'tenant.eu.auth0.com', clientAuthentication: 'client_secret_basic' })
    expect(GoogleProvider).type.not.toBeConstructableWith({ ...client, clientAuthentication: 'none' })
    expect<OAuth2ProviderOptions>().type.not.toBeAssignableFrom<typeof oauth2 & { clientAuthentication: 'none' }>()
    expect<OAuth2ProviderOptions>().type.not.toBeAssignableFrom<typeof oauth2 & { conform: (answer: Response) => string }>()
    expect<OAuth2ProviderOptions>().type.toBeAssignableFrom<typeof oauth2 & { conform: (answer: Response) => Promise<Response> }>()
  })
})

describe('a provider of one\'s own', () => {
  test('implements ExternalProvider', () => {
    class BadgeProvider implements ExternalProvider {
      readonly name = 'badge'

      async authorizationUrl ({ redirectUri, state }: AuthorizationRequest): Promise<URL> {
        return new URL(`https://badge.example/?${new URLSearchParams({ redirectUri, state })}`)
      }

      async authenticate ({ parameters }: AuthorizationResponse): Promise<{ identity: Identity, tokens: ProviderTokens }> {
        const sub = parameters.get('badge') ?? ''
        return { identity: { subject: sub, claims: { sub, department: 'press' }, emailVerified: false }, tokens: { accessToken: sub } }
      }
    }
    expect(new BadgeProvider()).type.toBeAssignableTo<ExternalProvider>()
  })

  test('can be an object', () => {
    const provider: ExternalProvider = {
      name: 'badge',
      async authorizationUrl (request) {
        expect(request).type.toBe<AuthorizationRequest>()
        return new URL('https://badge.example')
      },
      async authenticate (response) {
        expect(response).type.toBe<AuthorizationResponse>()
        expect(response.parameters).type.toBe<URLSearchParams>()
        return { identity: { subject: '1', claims: { sub: '1' }, emailVerified: false }, tokens: { accessToken: 'token' } }
      }
    }
    expect(provider).type.toBe<ExternalProvider>()
  })

  test('is given what ties an answer to its request, and what the application asks of it', () => {
    expect<SignInParameters>().type.toBe<{ loginHint?: string, prompt?: string, maxAge?: number, scopes?: readonly string[], acrValues?: readonly string[] }>()
    expect<AuthorizationRequest>().type.toBe<Flat<SignInParameters & { redirectUri: string, state: string, nonce: string, codeVerifier: string }>>()
    expect<AuthorizationResponse>().type.toBe<Flat<AuthorizationRequest & { parameters: URLSearchParams }>>()
  })

  test('has all three members, and an identity with all of its own', () => {
    expect<ExternalProvider>().type.not.toBeAssignableFrom<Omit<GoogleProvider, 'name'>>()
    expect<ExternalProvider>().type.not.toBeAssignableFrom<Omit<GoogleProvider, 'authenticate'>>()
    expect<ExternalProvider>().type.not.toBeAssignableFrom<Pick<GoogleProvider, 'name' | 'authenticate'> & { authorizationUrl: () => string }>()
    expect<RequiredOptions<Identity>>().type.toBe<'subject' | 'claims' | 'emailVerified'>()
    expect<Identity>().type.not.toBeAssignableFrom<{ subject: number, claims: { sub: string }, emailVerified: boolean }>()
    expect<Identity>().type.not.toBeAssignableFrom<{ subject: string, claims: { email: string }, emailVerified: boolean }>()
  })
})

describe('providersFromEnv', () => {
  test('reads settings, by default those of the process', () => {
    expect(providersFromEnv).type.toBeCallableWith()
    expect(providersFromEnv).type.toBeCallableWith(process.env)
    expect(providersFromEnv).type.toBeCallableWith({ GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: undefined })
    expect(providersFromEnv).type.not.toBeCallableWith('.env')
    expect(providersFromEnv).type.not.toBeCallableWith({ GOOGLE_CLIENT_ID: 5 })
  })

  test('makes what the option providers takes', () => {
    expect(providersFromEnv()).type.toBe<ExternalProvider[]>()
    expect(Fastify().register).type.toBeCallableWith(authPlugin, { providers: [...providersFromEnv(), new OidcProvider(oidc)] })
  })
})

/** The members of an intersection, in one object. */
type Flat<T> = { [Member in keyof T]: T[Member] }
