/** Registration with a passkey in place of a password, by a link that has confirmed the address. */
import type { FastifyRequest } from 'fastify'
import type { User } from '../../accounts/account.js'
import type { IdentityClaims } from '../../claims.js'
import { type AuthContext, needed } from '../../core/context.js'
import type { Findings } from '../../core/findings.js'
import { guestOf, promotionOf } from '../../core/guests.js'
import { type Content, html } from '../../core/pages/elements.js'
import type { LinkView } from '../../core/pages/link-page.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import { identityOfUser, withoutWrites } from '../../core/sign-in.js'
import { AuthError, PASSKEY_EXISTS } from '../../errors.js'
import { creating } from '../../hooks.js'
import { type Registration, assertFree, openRegistration } from '../mail-links.js'
import type { PasskeyCeremonies } from './ceremonies.js'
import { passkeyForm } from './page.js'
import { countedResponse, takeChallenge } from './sign-in.js'

/**
 * Begins the ceremony of a passkey for an account that does not exist yet. The user handle is that
 * of the link, or the guest's: a second passkey by it replaces the first one on the same device.
 */
export async function beginSignUp (
  auth: AuthContext, request: FastifyRequest, token: string
): Promise<ReturnType<PasskeyCeremonies['registrationOptions']> & { newUserId: string }> {
  const { userId: newId, email } = await openRegistration(auth, token)
  await refuseOtherWays(auth, { email, userId: null })
  await assertFree(auth.accounts, email)
  const userId = (await guestOf(auth, request))?.userId ?? newId
  const { ceremonies } = needed(auth.parts.passkeys, 'passkeys')
  return { newUserId: userId, ...ceremonies.registrationOptions({ userId, email, name: null }, []) }
}

/**
 * Creates the user of a link with a passkey, which the authenticator has made for a user whom it
 * has verified: all at once, so that nobody has an account without a sign-in method.
 *
 * @param user what the form says of them
 * @param before what comes first, once the passkey is verified
 */
export async function createByPasskey (
  auth: AuthContext,
  { request, response: field }: { request: FastifyRequest, response: unknown },
  { userId: newId, email, ...user }: Registration & Pick<User, 'name' | 'claims'>,
  before: () => Promise<void>
): Promise<Omit<Findings, 'remember'>> {
  const { accounts } = auth
  const counted = await countedResponse(auth, request, field)
  // First, so that a form whose options were refused is refused for the same reason.
  await assertFree(accounts, email)
  const response = await takeChallenge(request, counted, 'sign-up')
  const guest = await guestOf(auth, request)
  const userId = guest?.userId ?? newId
  if (response.newUserId !== userId) throw new AuthError('invalid_state')
  const { challenge } = response
  const passkey = await needed(auth.parts.passkeys, 'passkeys').ceremonies
    .verifyRegistration(response, { challenge, name: null })
  await before()
  const identity: IdentityClaims = {
    sub: userId, email, email_verified: true, ...(user.name !== null && { name: user.name })
  }
  const link = { provider: 'application', subject: userId, claims: identity }
  const newUser = { ...user, userId, email, emailVerified: true, isNew: true, link, initialFactors: [passkey] } as const
  if (guest !== null) {
    return { ...withoutWrites(guest), ...promotionOf(request, guest, newUser), method: 'passkey' }
  }
  const created = await accounts.createUser(newUser, creating(auth, { method: 'passkey', request }))
  if (created === null) {
    await assertFree(accounts, email)
    throw new AuthError('exists', { message: PASSKEY_EXISTS })
  }
  const found = identityOfUser(created, [{ ...link, userId }])
  return { ...withoutWrites(created), isNew: 'user', identity: found, method: 'passkey' }
}

/** Makes the form of the page behind the link; the fields of another form there are sent along. */
export function signUpForm (
  { parts, formPaths }: AuthContext, { texts, hidden }: Pick<LinkView, 'texts' | 'hidden'>, fields: Content,
  look: 'primary' | 'plain'
): { content: Content, script: string } {
  const { optionsPath: options, scriptPath: script } = needed(parts.passkeys, 'passkeys')
  const form = passkeyForm(texts, {
    ceremony: 'register',
    options,
    action: formPaths.get('local/register'),
    hidden,
    fields,
    look,
    submit: texts.register.passkey
  })
  return { script, content: [html`<p>${texts.factors.passkeysText}</p>`, form] }
}
