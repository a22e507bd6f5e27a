/**
 * A whole application on Postgres: providers, passwords, mails, pages, guards and roles.
 *
 *     npm install fastify fastify-svc-auth nodemailer postgres
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     export BASE_URL=https://shop.example DATABASE_URL=postgres://localhost/shop FIRST_ADMIN=you@shop.example
 *     export SMTP_URL=smtp://localhost MAIL_FROM='Shop <accounts@shop.example>'
 *     npx tsx 09-whole-account.ts
 */
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore, providersFromEnv } from 'fastify-svc-auth'
import { mailTexts } from 'fastify-svc-auth/mails'
import { Pages } from 'fastify-svc-auth/pages'
import { all, breached, common } from 'fastify-svc-auth/passwords'
import nodemailer from 'nodemailer'

const { BASE_URL: baseUrl = 'http://localhost:3000', DATABASE_URL = '', MAIL_FROM, FIRST_ADMIN } = process.env

const textOf = mailTexts({ name: 'Shop', support: 'help@shop.example' })
const transport = nodemailer.createTransport(process.env.SMTP_URL ?? 'smtp://localhost', { from: MAIL_FROM })

const local = new LocalIdentityProvider({
  password: { minLength: 12, check: all(common({ words: ['shop'] }), breached()) },
  registration: { verify: 'first' },
  async sendMail (mail) {
    await transport.sendMail({ to: { name: '', address: mail.to }, ...textOf(mail) })
  }
})

export const app = Fastify({ logger: true, trustProxy: 'loopback' })
await app.register(authPlugin, {
  baseUrl,
  providers: providersFromEnv(),
  local,
  store: new SqlAuthStore(DATABASE_URL),
  notices: { newBrowser: true },
  pages: new Pages({ name: 'Shop', links: [{ label: 'Privacy', href: '/privacy' }] }),
  async onSignIn ({ principal, identity }) {
    const isFirstAdmin = FIRST_ADMIN !== undefined && identity.claims.email === FIRST_ADMIN && identity.emailVerified
    if (isFirstAdmin) await app.auth.grant(principal.userId, { role: 'admin' })
  }
})

app.get('/', { preHandler: app.auth.requireUser }, async request => `Hello ${app.auth.user(request).claims.name}`)
app.get('/orders', { preHandler: app.auth.requireVerified }, async () => [])
app.get('/users', { preHandler: app.auth.requireClaims({ role: 'admin' }) }, async () => app.auth.users())

await app.listen({ port: Number(process.env.PORT ?? 3000) })
