import { createHmac, randomUUID } from 'node:crypto'

export const SECRET = 'a secret for the tokens of the benches'
export const ISSUER = 'svc-auth-local'
export const SUBJECT = '3b241101-e2bb-4255-8caf-4136c566a962'

const HEADER = encoded({ alg: 'HS256', typ: 'JWT' })

/** A token like those that fastify-svc-auth issues, of which no two are alike. */
export function newToken (): string {
  const now = Math.floor(Date.now() / 1000)
  const signed = `${HEADER}.${encoded({ role: 'member', iss: ISSUER, sub: SUBJECT, iat: now, exp: now + 3600, jti: randomUUID() })}`
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`
}

function encoded (value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
