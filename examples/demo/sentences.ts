import type { AuthErrorCode } from 'fastify-svc-auth'

/** What a page says about an error code. */
const ERRORS: Partial<Record<AuthErrorCode | 'wrong_password' | 'has_password' | 'not_confirmed', string>> = {
  invalid: 'The e-mail or the password is wrong.',
  exists: 'There is an account with this e-mail already. Sign in instead.',
  invalid_email: 'That is not a complete e-mail address.',
  weak_password: 'Choose a password of 8 to 1024 characters.',
  breached_password: 'This password is known to attackers. Choose another one.',
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
  blocked: 'This account is blocked. Ask an administrator of this application.',
  reauthenticate: 'Confirm that it is you, and do it again.',
  unverified: 'Confirm your e-mail first, by the link in the mail to your address.',
  user_in_use: 'Other data of this application belongs to your account. Ask an administrator to delete it.',
  wrong_password: 'The password is wrong.',
  has_password: 'Your account has a password already. Change that one.',
  not_confirmed: 'That was another account, or it took too long. Confirm with your own.',
  not_found: 'There is nothing at this address.'
}

/** What a page says about an action that succeeded. */
const DONE = {
  signed_out: 'You are signed out.',
  signed_in: 'You are signed in. The link does not work again.',
  linked: 'Added. You can sign in with it from now on.',
  unlinked: 'Removed. It no longer signs you in.',
  renamed: 'Your name is saved.',
  session_ended: 'That device is signed out.',
  signed_out_everywhere: 'You are signed out everywhere else.',
  password_set: 'Your password is set. All other sessions have ended.',
  registered: 'A mail is on its way to your address. Follow its link to finish your registration.',
  reset_requested: 'If an account has this address, a mail with a link is on its way to it.',
  verification_requested: 'A mail with the link is on its way to your address.',
  email_requested: 'A mail with a link is on its way to the new address. Follow it, and the address is yours.',
  deleted: 'Your account is deleted.',
  granted: 'The role is granted.',
  withdrawn: 'The role is withdrawn.',
  blocked: 'The user is blocked and signed out.',
  unblocked: 'The user may sign in again.',
  accepted: 'You accepted the invitation. Your role is among your claims.'
}

/** The value of `?done=` on the page that follows an action. */
export type Done = keyof typeof DONE

const ERROR_SENTENCES: ReadonlyMap<unknown, string> = new Map(Object.entries(ERRORS))
const DONE_SENTENCES: ReadonlyMap<unknown, string> = new Map(Object.entries(DONE))

/** @param code the value of `?error=`: anyone can write it, so it is looked up and never shown */
export function errorSentence (code: unknown): string {
  return ERROR_SENTENCES.get(code) ?? 'Something went wrong. Try again.'
}

/** @param code the value of `?done=`, looked up as well; an unknown one has no sentence */
export function doneSentence (code: unknown): string | undefined {
  return DONE_SENTENCES.get(code)
}
