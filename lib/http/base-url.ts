import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { wantsHtml, wantsJson } from './accept.js'
import type { Site } from './site.js'

/** The query parameter of a navigation that was redirected already. */
const MARK = 'redirected'

/** The Host that `app.inject` sends by default. No browser does: the port of http: is left out. */
const INJECTED = 'localhost:80'

const OTHER_HOST = 'A visit on another host is redirected to baseUrl, where sign-ins end; link to that host.'
const CHANGED_HOST = 'A proxy changes Host; pass it on, or send X-Forwarded-Host and set trustProxy of Fastify.'

/**
 * Makes a hook that redirects a navigation on another host to `baseUrl`: a sign-in that ends on
 * another host than it began has no cookie. Redirects once, because a proxy may change `Host` each
 * time, and logs each case once.
 */
export function redirectToBaseUrl (site: Site): onRequestAsyncHookHandler {
  const base = site.baseUrl === null ? null : new URL(site.baseUrl)
  const warned = new Set<string>()
  return async (request, reply) => {
    const { host } = request
    if (base === null || host === INJECTED || !isNavigation(request)) return
    // With or without the port that the protocol has anyway.
    if (URL.parse(`${base.protocol}//${host}`)?.host === base.host) return
    const url = new URL(site.routePath(String(request.routeOptions.url)), base)
    url.search = request.url.replace(/^[^?]*/, '')
    const warning = url.searchParams.has(MARK) ? CHANGED_HOST : OTHER_HOST
    if (!warned.has(warning)) request.log.warn({ host, baseUrl: site.baseUrl }, warning)
    warned.add(warning)
    if (warning === CHANGED_HOST) return
    url.searchParams.set(MARK, 'true')
    return reply.redirect(url.href, 302)
  }
}

/** Whether a browser asks for a page. Over plain http it sends no Fetch Metadata. */
function isNavigation (request: FastifyRequest): boolean {
  const { 'sec-fetch-mode': mode = wantsHtml(request) ? 'navigate' : undefined } = request.headers
  return request.method === 'GET' && mode === 'navigate' && !wantsJson(request)
}
