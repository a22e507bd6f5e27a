import { readFile } from 'node:fs/promises'
import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Html } from './html.js'
import type { Done } from './sentences.js'

/** What the plugin and `redirectDone` add to the address of a page. */
export interface PageQuery {
  error?: unknown
  done?: unknown
  next?: unknown
}

const FILES = {
  '/icon.svg': 'image/svg+xml',
  '/style.css': 'text/css; charset=utf-8',
  '/token.js': 'text/javascript; charset=utf-8'
}

/**
 * Headers and files of a server that shows pages.
 *
 * @param formTargets origins besides its own that the answer to a form may lead to
 */
export function setUpSite (app: FastifyInstance, formTargets: readonly string[] = []): void {
  const policy = [
    "default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self' https:",
    `form-action ${["'self'", ...formTargets].join(' ')}`, "base-uri 'none'", "frame-ancestors 'none'"
  ]
  const headers = {
    'Content-Security-Policy': policy.join('; '),
    // The plugin must see which page a sign-in started on: that page shows the error when it fails.
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
export function redirectDone (reply: FastifyReply, path: string, done: Done): FastifyReply {
  return reply.redirect(`${path}${path.includes('?') ? '&' : '?'}done=${done}`, 303)
}

/** The page to go to afterwards; the plugin follows it only within this application. */
export function pathAfter ({ next }: PageQuery, fallback: string): string {
  return typeof next === 'string' ? next : fallback
}

/** Sends a page. Pages hold private data, so no cache may keep them. */
export function sendPage (reply: FastifyReply, page: Html, status = 200): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').header('Cache-Control', 'no-store').send(page.toString())
}
