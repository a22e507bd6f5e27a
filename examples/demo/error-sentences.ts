import type { AuthErrorCode } from 'fastify-svc-auth'

/** What a page says about an error code, in the words of this application. */
const SENTENCES: Partial<Record<AuthErrorCode | 'not_found', string>> = {
  invalid: 'The e-mail or the password is wrong.',
  exists: 'There is an account with this e-mail already. Sign in instead.',
  invalid_email: 'That is not a complete e-mail address.',
  weak_password: 'Choose a password of 8 to 1024 characters.',
  claim_not_allowed: 'You cannot give yourself this role.',
  invalid_request: 'Something in the form is missing. Fill it in again.',
  cross_origin: 'The form was sent from another site. Use the one on this page.',
  rate_limited: 'That was a little too often. Wait a moment and try again.',
  busy: 'Many people are signing in right now. Try again in a moment.',
  unavailable: 'Accounts cannot be reached at the moment. Try again later.',
  invalid_state: 'This sign-in took too long or was used already. Start it again.',
  access_denied: 'You cancelled the sign-in.',
  provider_error: 'The provider’s answer could not be accepted. Start the sign-in again.',
  provider_unavailable: 'The provider cannot be reached at the moment. Try again later.',
  account_exists: 'There is an account with this e-mail already. Sign in to it the way you did before.',
  already_linked: 'This sign-in belongs to another account.',
  last_link: 'This is your only way to sign in. Add another one first.',
  invalid_token: 'This link was used already, is too old, or is not complete. Ask for a new one.',
  unauthenticated: 'Sign in to see this page.',
  forbidden: 'Your account may not see this page.',
  unknown_user: 'This account does not exist any more.',
  not_found: 'There is nothing at this address.'
}

const SENTENCE_OF_CODE: ReadonlyMap<unknown, string> = new Map(Object.entries(SENTENCES))

/** @param code whatever stands in `?error=`: anyone can write that, so it is looked up and never shown */
export function errorSentence (code: unknown): string {
  return SENTENCE_OF_CODE.get(code) ?? 'Something went wrong. Try again.'
}
