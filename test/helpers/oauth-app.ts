import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyServerOptions, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { type AuthPluginOptions, SqlAuthStore } from '../../lib/index.js'
import { OAuthServer, type OAuthServerOptions } from '../../lib/oauth-server.js'
import { Pages } from '../../lib/pages.js'
import { localProvider, startApp } from './app.js'
import { Browser } from './browser.js'

export const ISSUER = 'https://app.example'
export const RESOURCE = `${ISSUER}/mcp`
export const REDIRECT = 'https://client.example/callback'
export const ADA = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }

const CLIENTS = [
  { client_id: 'assistant', client_name: 'Assistant', redirect_uris: [REDIRECT, 'http://127.0.0.1/callback', 'com.example.app:/cb'] },
  { client_id: 'other', client_name: 'Other', redirect_uris: [REDIRECT] },
  { client_id: 'own', client_name: 'Own', redirect_uris: [REDIRECT, 'http://127.0.0.1/callback'], firstParty: true }
]

const RESOURCES = { [RESOURCE]: { scopes: { 'notes:read': 'Read your notes', 'notes:write': 'Change your notes' } } }

/** The options of an application with an authorization server. */
export function serverOptions (server: Partial<OAuthServerOptions> = {}, options: AuthPluginOptions = {}): AuthPluginOptions {
  const oauthServer = new OAuthServer({ resources: RESOURCES, clients: CLIENTS, ...server })
  const { store = new SqlAuthStore(':memory:') } = options
  return { baseUrl: ISSUER, local: localProvider(), pages: new Pages({ name: 'Shop' }), oauthServer, ...options, store }
}

/** Adds `/mcp`, which takes the tokens of the server. */
export function addResource (app: FastifyInstance): void {
  const guard = app.auth.requireBearerFor({ audience: RESOURCE, scopes: ['notes:read'] })
  app.post('/mcp', { preHandler: guard }, async request => request.token)
}

/** An application with an authorization server, and its resource. */
export async function startServer (
  t: Test, server?: Partial<OAuthServerOptions>, options?: AuthPluginOptions, fastify: FastifyServerOptions = {},
  extend: (app: FastifyInstance) => void = () => {}
): Promise<FastifyInstance> {
  return startApp(t, serverOptions(server, options), fastify, app => {
    addResource(app)
    extend(app)
  })
}

/** A browser in which Ada is signed in. */
export async function signedIn (app: FastifyInstance): Promise<Browser> {
  const browser = new Browser(app)
  const { statusCode } = await browser.post('/auth/local/register', ADA)
  if (statusCode === 409) await browser.post('/auth/local/login', ADA)
  return browser
}

/** A client, as a library would be one. */
export class Client {
  readonly app: FastifyInstance
  readonly id: string
  readonly redirectUri: string
  verifier = ''
  state = ''

  constructor (app: FastifyInstance, id = 'assistant', redirectUri = REDIRECT) {
    this.app = app
    this.id = id
    this.redirectUri = redirectUri
  }

  /** Returns the path of an authorization request. */
  request (parameters: Record<string, string> = {}): string {
    this.verifier = randomBytes(32).toString('base64url')
    this.state = randomBytes(8).toString('base64url')
    return `/auth/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: this.id,
      redirect_uri: this.redirectUri,
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: this.state,
      scope: 'notes:read',
      ...parameters
    })}`
  }

  /** Lets the user of a browser allow the request; returns the parameters that the client gets. */
  async authorize (browser: Browser, parameters: Record<string, string> = {}): Promise<URLSearchParams> {
    return answerOf(await decide(browser, await browser.get(this.request(parameters), HTML)))
  }

  async token (fields: Record<string, string>): Promise<LightMyRequestResponse> {
    return send(this.app, '/auth/oauth/token', { client_id: this.id, ...fields })
  }

  async redeem (code: string, fields: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.token({
      grant_type: 'authorization_code', code, redirect_uri: this.redirectUri, code_verifier: this.verifier, ...fields
    })
  }

  async refresh (token: string, fields: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.token({ grant_type: 'refresh_token', refresh_token: token, ...fields })
  }

  /** Connects the user of a browser. */
  async connect (browser: Browser): Promise<Tokens> {
    const code = (await this.authorize(browser)).get('code') ?? ''
    return (await this.redeem(code)).json<Tokens>()
  }
}

export interface Tokens {
  access_token: string
  refresh_token: string
  expires_in: number
  scope: string
}

export const HTML = { accept: 'text/html' }

/** Sends the form of a consent page. */
export async function decide (
  browser: Browser, page: LightMyRequestResponse, decision: 'allow' | 'deny' = 'allow'
): Promise<LightMyRequestResponse> {
  return browser.submit('/auth/oauth/authorize', { ...fieldsIn(page.body), decision })
}

/** The hidden fields of the first form of a page. */
export function fieldsIn (body: string): Record<string, string> {
  const [form = ''] = /<form[^]*?<\/form>/.exec(body) ?? []
  return Object.fromEntries(Array.from(form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g), ([, name, value]) =>
    [name, String(value).replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))]))
}

/** The parameters that a client gets by a redirect, or by a page that navigates. */
export function answerOf ({ headers: { location }, body }: LightMyRequestResponse): URLSearchParams {
  const [, refresh = ''] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(body) ?? []
  return new URL(location ?? refresh.replace(/&#38;/g, '&')).searchParams
}

/** Sends a form as programs do, without cookies. */
export async function send (app: FastifyInstance, url: string, fields: Record<string, string>): Promise<LightMyRequestResponse> {
  return app.inject({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://elsewhere.example' },
    payload: new URLSearchParams(fields).toString()
  })
}

/** Asks the resource. */
export async function ask (app: FastifyInstance, token: string): Promise<LightMyRequestResponse> {
  return app.inject({ method: 'POST', url: '/mcp', headers: { authorization: `Bearer ${token}` } })
}
