import type { FastifyInstance, FastifyServerOptions, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { type AuthPluginOptions, type LocalIdentityProviderOptions, type Mail, MemoryAuthStore } from '../../lib/index.js'
import { type Mailbox, mailbox } from '../../lib/testing.js'
import { localProvider, startApp } from './app.js'
import { Browser } from './browser.js'
import { OwnProvider } from './own-provider.js'

export const BASE_URL = 'https://app.example'
export const ADA = { email: 'ada@example.com', password: 'correct horse' }
export const NEW_PASSWORD = 'battery staple'

/** An application that sends mails. */
export interface MailApp {
  app: FastifyInstance
  mails: Mailbox
  browser: Browser
}

/** Starts an application with passwords, two providers and mails, without limits unless the options have some. */
export async function startMailApp (
  t: Test,
  options: AuthPluginOptions = {},
  local: LocalIdentityProviderOptions = {},
  server: FastifyServerOptions = {},
  extend: (app: FastifyInstance) => void = () => {}
): Promise<MailApp> {
  const mails = mailbox()
  const withMails: LocalIdentityProviderOptions = { sendMail: mails.sendMail, ...local }
  if (withMails.sendMail !== undefined) withMails.mails = { limits: options.rateLimit !== undefined, ...local.mails }
  const app = await startApp(t, {
    baseUrl: BASE_URL,
    store: new MemoryAuthStore(),
    providers: [new OwnProvider('a'), new OwnProvider('b')],
    local: localProvider(withMails),
    rateLimit: false,
    ...options
  }, server, app => {
    app.get('/private', { preHandler: app.auth.requireUser }, async () => 'private')
    app.get('/recent', { preHandler: app.auth.requireRecent({ within: 600 }) }, async () => 'recent')
    app.get('/bearer', { preHandler: app.auth.requireBearer }, async () => 'bearer')
    app.get('/authentication', async request => request.authentication)
    app.get('/connect/:provider', async (request, reply) => reply.redirect(
      app.auth.signInUrl(String(Object(request.params).provider), { link: true, request, scopes: ['calendar'] })))
    extend(app)
  })
  return { app, mails, browser: new Browser(app) }
}

/** Registers a user in the browser, and returns the token that confirms their address. */
export async function registerAt ({ browser, mails }: MailApp, user = ADA): Promise<string> {
  await browser.post('/auth/local/register', user)
  return (await mails.next('verify-email')).token
}

/** Confirms the address of the signed-in user, or with a password, by a link, and keeps what the account has. */
export async function confirmAddress (browser: Browser, token: string, password?: string): Promise<LightMyRequestResponse> {
  const fields = { token, ...(password !== undefined && { password }) }
  const asked = await browser.post('/auth/local/verify-email', fields)
  const { code, keep } = asked.statusCode === 409 ? asked.json() : {}
  return code === 'choice_required' ? browser.post('/auth/local/verify-email', { ...fields, existing: keep }) : asked
}

/** Asks for a new password, and returns the token for it. */
export async function resetTokenOf ({ app, mails }: MailApp, email = ADA.email): Promise<string> {
  await new Browser(app).post('/auth/local/forgot-password', { email })
  return (await mails.next('reset-password')).token
}

/** The mails that the application has sent, once all are sent: it is closed. */
export async function mailsInTheEnd ({ app, mails }: MailApp): Promise<readonly Mail[]> {
  await app.close()
  return mails.all
}

/** The fields of the forms on a page, each with what a program would send: the hidden ones alone. */
export function formsOn (page: string): Array<{ action: string, fields: Record<string, string> }> {
  return Array.from(page.matchAll(/<form method="post" action="([^"]*)">([^]*?)<\/form>/g), ([, action = '', form = '']) => ({
    action,
    fields: Object.fromEntries(Array.from(
      form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g),
      ([, name = '', value = '']) => [name, value]
    ).filter(([name]) => name !== 'shown_to'))
  }))
}
