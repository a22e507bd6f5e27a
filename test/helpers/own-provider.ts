import type { LightMyRequestResponse } from 'fastify'
import type { AuthorizationRequest, AuthorizationResponse, ExternalProvider, Identity, ProviderTokens } from '../../lib/index.js'
import type { JsonValue } from '../../lib/claims.js'
import type { Browser } from './browser.js'

/** A provider as an application writes one: whoever comes back brings his identity along as the code. */
export class OwnProvider implements ExternalProvider {
  readonly name: string

  constructor (name: string) {
    this.name = name
  }

  async authorizationUrl ({ state }: AuthorizationRequest): Promise<URL> {
    return new URL(`https://${this.name}.example/authorize?state=${state}`)
  }

  async authenticate ({ parameters }: AuthorizationResponse): Promise<{ identity: Identity, tokens: ProviderTokens }> {
    const identity: Identity = JSON.parse(parameters.get('code') ?? '')
    return { identity, tokens: { accessToken: 'the-access-token', refreshToken: 'the-refresh-token', idToken: 'the.id.token', expiresIn: 60, scope: 'openid' } }
  }
}

export interface AdmittedUser {
  subject: string
  email?: string
  emailVerified?: boolean
  /** What else the provider says of him. */
  claims?: Record<string, JsonValue>
}

export function identityOf ({ subject, email, emailVerified = email !== undefined, claims }: AdmittedUser): Identity {
  return { subject, claims: { sub: subject, ...(email !== undefined && { email }), ...claims }, emailVerified }
}

/** What a click on a link of the application's pages sends. */
export const FROM_OWN_PAGE = { 'sec-fetch-site': 'same-origin', referer: 'https://app.example/account' }

/** Goes to a login route; the URL with which the person comes back. */
export async function leaveFor (browser: Browser, login: string, person: AdmittedUser, headers: Record<string, string> = FROM_OWN_PAGE): Promise<string> {
  const { statusCode, headers: { location = '' } } = await browser.get(login, headers)
  if (statusCode !== 302 || !location.startsWith('https://')) throw new Error(`${login} answered ${statusCode} ${location}`)
  const callback = login.replace(/\/login.*/, '/callback')
  return `${callback}?${new URLSearchParams({ state: new URL(location).searchParams.get('state') ?? '', code: JSON.stringify(identityOf(person)) })}`
}

/** Goes to a provider and comes back as this person. */
export async function signInAt (browser: Browser, provider: string, person: AdmittedUser): Promise<LightMyRequestResponse> {
  return browser.get(await leaveFor(browser, `/auth/${provider}/login`, person))
}

/** Goes to a provider to add this person to the account, and comes back. */
export async function linkAt (browser: Browser, provider: string, person: AdmittedUser): Promise<LightMyRequestResponse> {
  return browser.get(await leaveFor(browser, `/auth/${provider}/login?link=true`, person))
}
