import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { LocalIdentityProvider } from '../../dist/index.js'
import { ISSUER, SECRET, SUBJECT } from './tokens.js'

/** Each makes a token with the same claims. */
export async function issuers (): Promise<Record<string, () => Promise<string>>> {
  const local = new LocalIdentityProvider({ secret: SECRET })
  const key = await crypto.subtle.importKey('raw', Buffer.from(SECRET), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return {
    issueIdToken: () => local.issueIdToken(SUBJECT, { role: 'member' }),
    'jose, CryptoKey': () => new SignJWT({ role: 'member' })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuer(ISSUER).setSubject(SUBJECT).setIssuedAt().setExpirationTime('15m').setJti(randomUUID())
      .sign(key)
  }
}
