/** Signing in by mail: a link for the browser that asked, and a code as the bridge from another. */
import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type User, isBlocked } from '../accounts/account.js'
import type { ProvenMailbox } from '../accounts/mail-sign-in.js'
import { noteSubject } from '../audit.js'
import { digestOf } from '../base/digest.js'
import { announceRevoke } from '../channel.js'
import { type AuthContext, hasMailSignIn, needed } from '../context.js'
import { mayNeedFactor } from '../current-user/factors.js'
import { checkedEmail } from '../email.js'
import { AuthError } from '../errors.js'
import { newMailCode, normalCode } from '../factors/codes.js'
import { withQuery } from '../http/redirects.js'
import { findByMailbox } from '../mails/mail-links.js'
import type { OperatorSignIn } from '../mails/operator-link.js'
import { isEqual } from '../secrets.js'
import type { Principal } from '../session/record.js'
import { attemptEntry, findEntry, keyOf, putEntry, takeEntry } from '../session/pending-steps.js'
import { noteRequest } from '../session/sent-requests.js'
import { useOwner } from '../session/several-cookies.js'
import { identityOfUser, signIn, signInUser } from '../sign-in/sign-in.js'
import {
  DAY_MS, type EntryKey, MAIL_ATTEMPTS, MAIL_SIGN_IN, OPERATOR_LINK, type OneTimeEntries, PENDING_MS, USED_MAIL
} from '../store/one-time-entries.js'
import { pathOf } from '../web/act.js'
import { ACCEPTED, type Form, form } from '../web/form.js'
import { addressOf } from '../web/limits.js'
import { email } from '../web/password-forms.js'
import { accepted, isChecked, remember, signedIn, token } from '../web/schema-parts.js'
import { auditFirstProof, existing, existingOf } from './first-proof.js'

export interface PendingMailSignIn extends ProvenMailbox {
  /** What the token in the link names. */
  readonly id: string
  /** A keyed digest of the code; of no code where none was sent. */
  readonly code: string
  readonly remember: boolean
  readonly next: string | null
  /** A keyed digest of the client that asked for the mail, with the address. */
  readonly asker: string
}

const MAX_ATTEMPTS = 5

/** How many codes an address takes, in all browsers together, and within how many milliseconds. */
const LIMITS = [{ max: 10, window: 15 * 60_000 }, { max: 20, window: DAY_MS }]
/** One beyond the limits, which tells that they are passed. */
const MOST_KEPT = Math.max(...LIMITS.map(({ max }) => max)) + 1

/**
 * Sends a link and a code to an address, with an account or, where users may register, without. The
 * session remembers the request in any case, so that the answer and its time tell nothing; beyond
 * the limit, which counts each address, none.
 */
export const requestMail = form({
  path: '/local/mail-login',
  when: hasMailSignIn,
  summary: 'Send a link and a code by which the owner of an address signs in',
  description: 'The answer is the same for each address, whether or not an account has it.',
  user: 'anyone',
  fields: { email, remember },
  required: ['email'],
  answers: { 202: accepted },
  refuses: ['invalid_email'],
  limits: ['mail']
}, async (auth, { request, fields, outbox }) => {
  const email = checkedEmail(fields.email)
  const next = auth.pages.asked(request, fields.next)
  const mailer = needed(auth.mailer, 'sendMail')
  outbox.refuseWhenFull()
  const page = withQuery(auth.mailPages?.mailLogin ?? pathOf(auth, 'local/mail-login'), { next })
  const asker = ownerOf(auth, 'asker', `${addressOf(request)} ${email}`)
  const uses = await auth.records.count(asker, USED_MAIL, Date.now() - PENDING_MS)
  // For each address alike, and first: the mail before stays good.
  const delay = await outbox.delayOf({ kind: 'sign-in', to: email, uses })
  if (delay !== null) {
    outbox.skip('sign-in', 'limit')
    const query = delay < Infinity && { query: { retry_at: String(Math.ceil((Date.now() + delay) / 1000)) } }
    return { ...ACCEPTED, page, ...query }
  }
  const [user, left] = await Promise.all([findByMailbox(auth.accounts, email), attemptsLeft(auth, email)])
  const id = randomUUID()
  const isSent = user === null ? auth.local?.registration != null : !isBlocked(user)
  const code = isSent && left > 0 ? newMailCode() : null
  const pending: PendingMailSignIn = {
    id,
    email,
    user: user && { userId: user.userId, generation: user.generation },
    // Where no code is sent, that of a text that is no code.
    code: digestsOf(auth, id, code ?? randomUUID())[0],
    remember: isChecked(fields.remember),
    next,
    asker
  }
  await putEntry(request, MAIL_SIGN_IN, pending)

  const isForAny = auth.local?.signInByMail?.anyBrowser === true
  const entry = isForAny ? keyOf(request.session.sessionId, MAIL_SIGN_IN) : undefined
  if (isSent) outbox.link('sign-in', { userId: id, generation: 0, email, to: email, entry }, user, code)
  else if (user !== null) outbox.skip('sign-in', 'blocked')
  else if (mailer.answersUnknown) outbox.sendTo('unknown-address', email, null)
  else outbox.skip('sign-in', 'unknown')
  return { ...ACCEPTED, page }
})

/**
 * Signs the owner of a mailbox in, by the code, or by the token of the link in the browser that
 * asked for it: a program that opens links in mails signs in nowhere and uses nothing.
 *
 * @see OWASP ASVS 6.5.1, 6.5.5, 6.6.2
 */
export const confirmMail = form({
  path: '/local/mail-login/confirm',
  when: hasMailSignIn,
  summary: 'Sign in by the link or the code in a mail',
  user: 'anyone',
  fields: {
    token,
    code: { type: 'string', maxLength: 100, description: 'The six digits in the mail; without `token`' },
    existing
  },
  allowsExtraFields: true,
  answers: { 200: signedIn },
  refuses: [
    'invalid_token', 'invalid_code', 'invalid_state', 'unauthenticated', 'blocked', 'choice_required', 'account_exists'
  ],
  limits: ['code'],
  isSignInAttempt: true
}, async (auth, form) => {
  const { request, fields } = form
  await useOwner(request, id => keyOf(id, MAIL_SIGN_IN))
  const { token, code = '' } = fields
  const found = token === undefined ? await checkCode(auth, request, code) : await signInOfLink(auth, request, token)
  if (found === null) {
    throw new AuthError('invalid_state', {
      message: 'This link signs in once, in the browser in which it was asked for; type the code of the mail there.'
    })
  }
  const { pending, key, entries } = found
  const user = 'code' in pending ? await ownerOfMailbox(auth, pending) : null
  const { existing: chosen } = fields
  const existing = user === null ? 'remove' : await existingOf(auth, request, user, { existing: chosen })
  // One request of all gets it; an entry that another mail has replaced is not the one found.
  const taken = await takeEntry<{ id: string }>(request, key, entries)
  if (taken?.id !== pending.id) throw new AuthError('invalid_state')
  await record(auth, USED_MAIL, digestOf(pending.id))
  noteRequest(request, { next: pending.next })
  const principal = 'code' in pending
    ? await signInOwner(auth, form, { ...pending, user, existing })
    : await signInUser(auth, request, { ...pending, remember: false, skipsFactor: false })
  return { status: 200, body: principal, page: auth.pages.afterSuccess(request, fields.next ?? pending.next) }
})

/** Returns the user who has the address of a sign-in that waits. */
export async function ownerOfMailbox (
  { accounts }: AuthContext, { user, email }: PendingMailSignIn
): Promise<PendingMailSignIn['user']> {
  return user ?? accounts.findUser({ email })
}

/** The sign-in that a link or a code belongs to, and where it waits; default beside the session. */
interface FoundSignIn {
  readonly pending: PendingMailSignIn | (OperatorSignIn & { readonly next: null })
  readonly key: EntryKey
  readonly entries?: OneTimeEntries | undefined
}

/** Checks a code, which counts for the mail and for the address, whether or not it is right. */
async function checkCode (auth: AuthContext, request: FastifyRequest, text: string): Promise<FoundSignIn> {
  const code = normalCode(text)
  if (!/^[0-9]{6}$/.test(code)) throw new AuthError('invalid_code')
  const pending = await attemptEntry<PendingMailSignIn>(request, MAIL_SIGN_IN, MAX_ATTEMPTS)
  if (pending === null) throw new AuthError('invalid_state')
  noteSubject(request, pending.user?.userId)
  await countAttempt(auth, pending.email)
  const isRight = digestsOf(auth, pending.id, code).some(digest => isEqual(digest, pending.code))
  if (!isRight) throw new AuthError('invalid_code')
  return { pending, key: keyOf(request.session.sessionId, MAIL_SIGN_IN) }
}

/**
 * Returns the sign-in that a link finishes in this browser, and uses nothing; null for none. The
 * link of an operator finishes its own in any browser.
 */
export async function signInOfLink (
  auth: AuthContext, request: FastifyRequest, token: string
): Promise<FoundSignIn | null> {
  const { userId: id, entry } = await needed(auth.mailTokens, 'sendMail').verify('sign-in', token)
  const keys = [keyOf(request.session.sessionId, MAIL_SIGN_IN)]
  const isForAny = auth.local?.signInByMail?.anyBrowser === true
  if (isForAny && entry !== undefined) keys.push({ ...entry, kind: MAIL_SIGN_IN })
  for (const key of keys) {
    const pending = await findEntry<PendingMailSignIn>(request, key)
    if (pending?.id === id) return { pending, key }
  }
  const { entries } = auth.kept
  if (entry === undefined || entries === null) return null
  const key = { ...entry, kind: OPERATOR_LINK }
  const pending = await findEntry<OperatorSignIn>(request, key, entries)
  return pending?.id === id ? { pending: { ...pending, next: null }, key, entries } : null
}

/** Whether a link was used, in whatever browser. */
export async function isUsedLink (auth: AuthContext, token: string): Promise<boolean> {
  const { userId: id } = await needed(auth.mailTokens, 'sendMail').verify('sign-in', token)
  return await auth.records.count(digestOf(id), USED_MAIL, Date.now() - PENDING_MS) > 0
}

/** Signs the owner of an address in, as the user who has it, or as a new one. */
async function signInOwner (
  auth: AuthContext, { request, outbox }: Form<unknown>,
  { email, user: found, remember, asker, existing }: PendingMailSignIn & { existing: string }
): Promise<Principal> {
  await record(auth, USED_MAIL, asker)
  const newId = auth.local?.registration == null ? null : randomUUID()
  const holds = (user: User): boolean => mayNeedFactor(auth, user)
  noteSubject(request, found?.userId)
  const proven = await auth.accounts.signInByMail({ user: found, email }, { newId, holds, existing })
  if (proven === null) throw new AuthError('invalid_state')
  const { user, links, as } = proven
  if (as === 'first-proof') {
    auditFirstProof(request, proven, existing)
    announceRevoke(auth.channel, user.userId, request)
    if (existing === 'remove') outbox.notice('email-proven', user)
  }
  return signIn(auth, request, {
    user,
    isNew: as === 'new' && 'user',
    held: as === 'held' ? 'mail' : null,
    identity: identityOfUser(user, links),
    method: 'mail',
    tokens: null,
    remember,
    outbox
  })
}

/** Counts a code for its address: no other mail, browser or process resets that. */
async function countAttempt (auth: AuthContext, email: string): Promise<void> {
  // Before they are counted, so that of many at once no more than these pass.
  await record(auth, MAIL_ATTEMPTS, ownerOf(auth, 'attempts', email))
  if (await attemptsLeft(auth, email) < 0) throw new AuthError('rate_limited', { retryAfter: 15 * 60 })
}

async function attemptsLeft (auth: AuthContext, email: string): Promise<number> {
  const owner = ownerOf(auth, 'attempts', email)
  const since = (window: number) => auth.records.count(owner, MAIL_ATTEMPTS, Date.now() - window)
  const left = await Promise.all(LIMITS.map(async ({ max, window }) => max - await since(window)))
  return Math.min(...left)
}

async function record ({ records }: AuthContext, kind: string, owner: string): Promise<void> {
  await records.put({ hash: digestOf(randomUUID()), kind, owner, content: {}, startedAt: Date.now() }, MOST_KEPT)
}

/** The store does not learn the address. */
function ownerOf (auth: AuthContext, what: string, text: string): string {
  return digestsOf(auth, what, text)[0]
}

function digestsOf ({ mailTokens }: AuthContext, ...parts: [string, string]): [string, ...string[]] {
  return needed(mailTokens, 'sendMail').digestsOf(parts.join(' '))
}
