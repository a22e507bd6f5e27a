import { readFile } from 'node:fs/promises'
import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Html } from './html.js'

/** What the plugin adds to the address of a page of ours. */
export interface PageQuery {
  error?: unknown
  next?: unknown
}

const FILES = {
  '/style.css': 'text/css; charset=utf-8',
  '/token.js': 'text/javascript; charset=utf-8'
}

/**
 * Headers and files of a server that shows pages.
 *
 * @param formTargets origins besides its own that the answer to a form may lead to
 */
export function setUpSite (app: FastifyInstance, formTargets: readonly string[] = []): void {
  const formAction = ["'self'", ...formTargets].join(' ')
  const headers = {
    'Content-Security-Policy': `default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' https:; form-action ${formAction}; base-uri 'none'; frame-ancestors 'none'`,
    // Our own pages must be named to us: that is where the plugin sends people back to when a sign-in fails.
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff'
  }
  app.addHook('onRequest', async (_request, reply) => { reply.headers(headers) })

  for (const [path, type] of Object.entries(FILES)) {
    app.get(path, async (_request, reply) => reply.type(type).send(await readFile(new URL(`public${path}`, import.meta.url))))
  }
}

/** Lets routes take forms, of pages of this application only: one of another site could send a form in the name of its reader. */
export async function takeForms (scope: FastifyInstance): Promise<void> {
  await scope.register(formbody)
  scope.addHook('onRequest', scope.auth.refuseCrossOrigin)
}

/** Pages hold what is private, so no cache keeps them. */
export function sendPage (reply: FastifyReply, page: Html, status = 200): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').header('Cache-Control', 'no-store').send(page.toString())
}
