// Watches the audit events of each process of the tests: one with a secret ends it.
import { subscribe } from 'node:diagnostics_channel'

const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g

/** What no event holds, by what it looks like. Passwords and secrets of the tests are known. */
const SECRETS = {
  'an e-mail': /[^\s@"]@[^\s@"]+\.\w/,
  'a password of the tests': /correct horse|pass ?phrase|wrong password|another horse/i,
  'a secret of the tests': /of-the-tests|the-(?:access|refresh)-token|the\.id\.token/,
  'a token': /\beyJ[\w-]+\./,
  'a hash': /\$(?:argon2|scrypt|2[aby]\$|pbkdf2)/,
  'a code': /^\d{6}$/,
  'a recovery code': /^(?:[0-9A-HJKMNP-TV-Z]{4}-?){6}$/,
  'a state, a cookie or a link': /[\w-]{32,}/
}

/** Which secrets an event holds, by name. The user agent is what the client has sent. */
export function secretsIn ({ userAgent: _, ...event }) {
  const texts = textsIn(event).map(text => text.replaceAll(UUID, ''))
  return Object.keys(SECRETS).filter(name => texts.some(text => SECRETS[name].test(text)))
}

function textsIn (value) {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || value instanceof Date) return []
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)])
}

/** A subscriber that throws ends the process by an uncaught exception. */
export function watchEvents () {
  subscribe('fastify-svc-auth.audit', event => {
    const found = secretsIn(event)
    if (found.length > 0) throw new Error(`the audit event ${event.event} holds ${found.join(' and ')}: ${JSON.stringify(event)}`)
  })
}
