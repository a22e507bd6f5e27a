import { readFile } from 'node:fs/promises'
import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Html, html } from './html.js'

const FILES = {
  '/auth.css': 'text/css; charset=utf-8',
  '/icon.svg': 'image/svg+xml',
  '/style.css': 'text/css; charset=utf-8',
  '/token.js': 'text/javascript; charset=utf-8'
}

/** The pages that each page leads to, if they are mounted. */
const PAGES = [
  ['/auth/pages/account', 'Account'], ['/auth/pages/factors', 'Security'], ['/notes', 'Notes'], ['/mailbox', 'Mailbox'],
  ['/admin', 'Administration'], ['/docs', 'API']
] as const

/** What a page says about an action that succeeded, by the value of `?done=`. */
const DONE = {
  signed_in: 'You are signed in. The link does not work again.',
  connected: 'The connection is added.',
  disconnected: 'The connection is removed.',
  proven: 'The domain is proven.',
  unproven: 'The domain is not proven: its record was not found.',
  granted: 'The role is granted.',
  withdrawn: 'The role is withdrawn.',
  blocked: 'The user is blocked and signed out.',
  unblocked: 'The user may sign in again.',
  ended: 'The session has ended.',
  reset: 'The second factors and passkeys are removed.',
  changed: 'The e-mail is changed, and all sessions of the user have ended.',
  noted: 'The note is kept.',
  accepted: 'You accepted the invitation. Your role is among your claims.'
}

/**
 * Headers and files of a server that shows pages.
 *
 * @param formTargets origins besides its own that the answer to a form may lead to
 */
export function setUpSite (app: FastifyInstance, formTargets: readonly string[] = []): void {
  const policy = [
    "default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self'",
    `form-action ${["'self'", ...formTargets].join(' ')}`, "base-uri 'none'", "frame-ancestors 'none'"
  ]
  const headers = {
    'Content-Security-Policy': policy.join('; '),
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff'
  }
  app.addHook('onRequest', async (_request, reply) => { reply.headers(headers) })

  for (const [path, type] of Object.entries(FILES)) {
    const file = new URL(`public${path}`, import.meta.url)
    app.get(path, async (_request, reply) => reply.type(type).send(await readFile(file)))
  }
}

/** Lets routes take forms, from this application's pages only: another site could send one in the user's name. */
export async function takeForms (scope: FastifyInstance): Promise<void> {
  await scope.register(formbody)
  scope.addHook('onRequest', scope.auth.refuseCrossOrigin)
}

/** Sends the browser to the page that says what was done. */
export function redirectDone (reply: FastifyReply, path: string, done: keyof typeof DONE): FastifyReply {
  return reply.redirect(`${path}${path.includes('?') ? '&' : '?'}done=${done}`, 303)
}

/** Sends a page of the application. */
export async function sendPage (reply: FastifyReply, title: string, content: Html): Promise<FastifyReply> {
  const { principal, query, routeOptions, server } = reply.request
  const isUser = principal !== null && !principal.guest
  const bar = new Html(await server.auth.impersonationBar(reply.request, { next: '/admin' }))
  // Anyone can write the address, so its code is looked up and never shown.
  const done = new Map(Object.entries(DONE)).get(Object(query).done)
  const codesLeft = Object(query).recovery_codes_left
  const header = html`
    ${bar}
    <a href="/"><img src="/icon.svg" alt="" width="32" height="32"> fastify-svc-auth</a>
    <nav aria-label="Pages">
      ${PAGES.filter(([path]) => server.hasRoute({ method: 'GET', url: path })).map(([path, label]) => html`
        <a href="${path}"${path === routeOptions.url && html` aria-current="page"`}>${label}</a>`)}
      ${isUser && html`
        <form method="post" action="/auth/logout">
          <input type="hidden" name="next" value="/auth/pages/sign-in"><button class="plain">Sign out</button>
        </form>`}
      ${!isUser && html`<a href="/auth/pages/sign-in">Sign in</a>`}
    </nav>`
  const message = html`
    ${done !== undefined && html`<p role="status">${done}</p>`}
    ${/^[0-2]$/.test(codesLeft) && html`
      <p role="status">Recovery codes left: ${codesLeft}. <a href="/auth/pages/factors">Create new ones</a></p>`}`
  return sendDocument(reply, { title, header, content: html`${message}${content}` })
}

/** Sends the document of a page. Pages hold private data, so no cache may keep them. */
export function sendDocument (
  reply: FastifyReply,
  { title, header, content }: { title: string, header: Html, content: Html }
): FastifyReply {
  const { markup } = html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title} · fastify-svc-auth</title>
  <link rel="icon" href="/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/auth.css">
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <header>${header}</header>
  <main>
    <h1>${title}</h1>
    ${content}
  </main>
</body>
</html>
`
  return reply.type('text/html; charset=utf-8').header('Cache-Control', 'no-store').send(markup)
}
