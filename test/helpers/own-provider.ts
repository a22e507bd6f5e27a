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

/** Asks a login route by a form, as a script of a page does: the query of `login` goes in its body. */
export async function postLogin (browser: Browser, login: string, headers: Record<string, string> = FROM_OWN_PAGE): Promise<LightMyRequestResponse> {
  const { pathname, searchParams } = new URL(login, 'https://app.example')
  return browser.post(pathname, Object.fromEntries(searchParams), { ...headers, accept: 'application/json' })
}

/** Starts what a login route is asked for, a sign-in by its link and all else by a form; the URL at the provider. */
export async function startAt (browser: Browser, login: string, headers: Record<string, string> = FROM_OWN_PAGE): Promise<string> {
  const link = await browser.get(login, headers)
  const isPage = link.statusCode !== 302 || !URL.canParse(link.headers.location ?? '')
  const form = isPage ? await postLogin(browser, login, headers) : null
  const url: unknown = form === null ? link.headers.location : form.json().url
  if (typeof url !== 'string') throw new Error(`${login} answered ${form?.statusCode} ${form?.body}`)
  return url
}

/** Goes to a login route; the URL with which the person comes back. */
export async function leaveFor (browser: Browser, login: string, person: AdmittedUser, headers: Record<string, string> = FROM_OWN_PAGE): Promise<string> {
  return callbackOf(await startAt(browser, login, headers), person, login.replace(/\/login.*/, '/callback'))
}

/** The path with which a person comes back from a URL at a provider. */
export function callbackOf (url: string, person: AdmittedUser, callback = `/auth/${new URL(url).hostname.split('.', 1).join()}/callback`): string {
  return `${callback}?${new URLSearchParams({ state: new URL(url).searchParams.get('state') ?? '', code: JSON.stringify(identityOf(person)) })}`
}

/** Goes to a provider and comes back as this person. */
export async function signInAt (browser: Browser, provider: string, person: AdmittedUser): Promise<LightMyRequestResponse> {
  return browser.get(await leaveFor(browser, `/auth/${provider}/login`, person))
}

/** Goes to a provider to add this person to the account, and comes back. */
export async function linkAt (browser: Browser, provider: string, person: AdmittedUser): Promise<LightMyRequestResponse> {
  return browser.get(await leaveFor(browser, `/auth/${provider}/login?link=true`, person))
}
