/** Characters of a token: Node.js accepts no more for all headers together. */
export const MAX_TOKEN_LENGTH = 16_384

/** Signs a text that is not a set of claims, as a compact JWS with HS256 (RFC 7515). */
export async function signedText (text: string, secret: string): Promise<string> {
  // jose is loaded with the first token, to start an application fast.
  const { CompactSign } = await import('jose/jws/compact/sign')
  return new CompactSign(Buffer.from(text)).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(secret))
}

/** Returns a text that {@link signedText} signed with one of the secrets; null for others. */
export async function verifiedText (token: string, secrets: readonly string[]): Promise<string | null> {
  if (token.length > MAX_TOKEN_LENGTH || !isCanonical(token)) return null
  const { compactVerify } = await import('jose/jws/compact/verify')
  for (const secret of secrets) {
    const verified = await compactVerify(token, Buffer.from(secret), { algorithms: ['HS256'] }).catch(() => null)
    if (verified !== null) return Buffer.from(verified.payload).toString()
  }
  return null
}

/** Whether a token has one form alone: decoders ignore padding and the last bits. */
export function isCanonical (token: string): boolean {
  return token.split('.').every(part => Buffer.from(part, 'base64url').toString('base64url') === part)
}
