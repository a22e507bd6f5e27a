/** What a page says, once, of the form that led to it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuthContext, needed } from '../context.js'
import { pathOf } from './act.js'

/**
 * The cookie with the word of a sentence. A parameter, signed or not, would say it to everyone who
 * opens the link: that their account was deleted, say. After that there is no session to keep it.
 */
const COOKIE = 'svc_notice'

/** Keeps the word of a sentence for the next page, if that is one of the plugin. */
export function keepNotice (
  auth: AuthContext, request: FastifyRequest, reply: FastifyReply, { target, word }: { target: string, word: unknown }
): void {
  if (!auth.hasPages || !target.startsWith(pathOf(auth, 'pages/'))) return
  if (typeof word !== 'string' || sentenceOf(auth, request, word) === null) return
  // Ten minutes: a page of recovery codes, or of a provider, may come before.
  setOwnCookie(auth, reply, { name: COOKIE, value: word, maxAge: 600 })
}

/** Sets a cookie that the routes of the plugin alone get; `maxAge` in seconds. */
export function setOwnCookie (
  auth: AuthContext, reply: FastifyReply, { name, value, maxAge }: { name: string, value: string, maxAge: number }
): void {
  const secure = auth.site.originOf(reply.request).startsWith('https:')
  reply.setCookie(name, value, { path: pathOf(auth, ''), httpOnly: true, sameSite: 'lax', secure, maxAge })
}

/** Returns the sentence that was kept for this page; null for none. It is shown once. */
export function takeNotice (auth: AuthContext, request: FastifyRequest, reply: FastifyReply): string | null {
  const word = request.cookies[COOKIE]
  if (word === undefined) return null
  reply.clearCookie(COOKIE, { path: pathOf(auth, '') })
  return sentenceOf(auth, request, word)
}

function sentenceOf (auth: AuthContext, request: FastifyRequest, word: string): string | null {
  const { common: { saved, sent }, notices } = needed(auth.layout, 'pages').textsFor(request)
  return new Map(Object.entries({ saved, sent, ...notices })).get(word) ?? null
}
