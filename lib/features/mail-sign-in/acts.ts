/** Signing in by mail: a link for the browser that asked, and a code as the bridge from another. */
import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type User, isBlocked } from '../../accounts/account.js'
import { type ProvenMailbox, userOfMailbox } from '../../accounts/sign-in.js'
import { announceRevoke, noteSubject } from '../../audit.js'
import { DAY_MS, digestOf } from '../../base/values.js'
import { pathOf } from '../../core/act.js'
import { newMailCode, normalCode } from '../second-factor/codes.js'
import { type AuthContext, needed } from '../../core/context.js'
import { currentPrincipal } from '../../core/current-user.js'
import { ACCEPTED, form } from '../../core/form.js'
import { guestOf, promotionOf } from '../../core/guests.js'
import { existing, existingOf, noteFirstProof, unprovenIn } from '../email/acts.js'
import { addressOf } from '../../core/limits.js'
import type { OperatorSignIn } from '../../core/mail-links.js'
import {
  type Content, action, button, codeField, filled, html, htmlForm, links, sentence
} from '../../core/pages/elements.js'
import { duration } from '../../core/pages/failure.js'
import { page, redirected, targetsOf, waysOn } from '../../core/pages/page.js'
import { existingParts, nameOf } from '../pages/parts.js'
import { ANY_ORIGIN, withError, withParameter, withQuery } from '../../core/redirects.js'
import { accepted, isChecked, remember, signedIn, token } from '../../core/schema.js'
import { otherWaysTo, refuseOtherWays } from '../../core/required-connection.js'
import { identityOfUser, signIn, signInUser } from '../../core/sign-in.js'
import { checkedEmail } from '../../email.js'
import { AuthError } from '../../errors.js'
import { creating } from '../../hooks.js'
import { isEqual } from '../../secrets.js'
import { attemptEntry, findEntry, keyOf, noteEntry, putEntry, takeEntry } from '../../session/lifecycle.js'
import type { Principal } from '../../session/record.js'
import { noteRequest } from '../../session/sent-requests.js'
import { useOwner } from '../../session/several-cookies.js'
import { type EntryKey, MAIL_ATTEMPTS, type OneTimeEntries, OPERATOR_LINK, PENDING_MS } from '../../session/store.js'
import { email } from '../password/forms.js'
import type { Submission } from '../../core/submission.js'
import { mayNeedFactor } from '../../core/methods.js'
import type { View } from '../../core/pages/layout.js'
import { hasMailSignIn } from '../local/offers.js'
import { findByMailbox } from '../mail-links.js'

/** The kind of a sign-in by mail, for the session that asked for it. */
const MAIL_SIGN_IN = 'mail-sign-in'
/** The kind of the note that such a mail was used, for the client that asked for it. */
const USED_MAIL = 'used-mail'

interface PendingMailSignIn extends ProvenMailbox {
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
  refuses: ['invalid_email', 'sso_required'],
  limits: ['mail']
}, async (auth, { request, fields, outbox }) => {
  const email = checkedEmail(fields.email)
  const next = auth.redirects.asked(request, fields.next)
  const mailer = needed(auth.mailer, 'sendMail')
  outbox.refuseWhenFull()
  const { isServed, refuse } = await otherWaysTo(auth, email)
  const page = withQuery(auth.mailPages?.mailLogin ?? pathOf(auth, 'local/mail-login'), { next })
  const asker = ownerOf(auth, 'asker', `${addressOf(request)} ${email}`)
  const uses = await auth.records.count(asker, USED_MAIL, Date.now() - PENDING_MS)
  // For each address alike, and first: the mail before stays good.
  const delay = await outbox.delayOf({ kind: 'sign-in', to: email, uses })
  if (delay !== null) {
    outbox.skip('sign-in', 'limit')
    refuse()
    const query = delay < Infinity && { query: { retry_at: String(Math.ceil((Date.now() + delay) / 1000)) } }
    return { ...ACCEPTED, page, ...query }
  }
  const [user, left] = await Promise.all([findByMailbox(auth.accounts, email), attemptsLeft(auth, email)])
  const id = randomUUID()
  const isOwn = isServed(user)
  const isSent = isOwn && (user === null ? auth.local?.registration != null : !isBlocked(user))
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
  else if (!isOwn) outbox.skip('sign-in', 'sso-required')
  else if (user !== null) outbox.skip('sign-in', 'blocked')
  else if (mailer.answersUnknown) outbox.sendTo('unknown-address', email, null)
  else outbox.skip('sign-in', 'unknown')
  refuse()
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
    'invalid_token', 'invalid_code', 'invalid_state', 'unauthenticated', 'blocked', 'choice_required', 'account_exists',
    'sso_required'
  ],
  limits: ['code'],
  isSignInAttempt: true
}, async (auth, submission) => {
  const { request, fields } = submission
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
  // Before the link or the code is used. One of the operator is not asked.
  if ('code' in pending) await refuseOtherWays(auth, { email: pending.email, userId: user && user.userId })
  const { existing: chosen } = fields
  const existing = user === null ? 'remove' : await existingOf(auth, request, user, { existing: chosen })
  // One request of all gets it; an entry that another mail has replaced is not the one found.
  const taken = await takeEntry<{ id: string }>(request, key, entries)
  if (taken?.id !== pending.id) throw new AuthError('invalid_state')
  await record(auth, USED_MAIL, digestOf(pending.id))
  noteRequest(request, { next: pending.next })
  const principal = 'code' in pending
    ? await signInOwner(auth, submission, { ...pending, user, existing })
    : await signInUser(auth, request, { ...pending, remember: false, skipsFactor: false })
  return { status: 200, body: principal, page: auth.redirects.afterSuccess(request, fields.next ?? pending.next) }
})

/** Returns the user who has the address of a sign-in that waits. */
async function ownerOfMailbox (
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
async function signInOfLink (
  auth: AuthContext, request: FastifyRequest, token: string
): Promise<FoundSignIn | null> {
  const { userId: id, entry } = await needed(auth.mailTokens, 'sendMail').verify('sign-in', token)
  const keys = [keyOf(request.session.sessionId, MAIL_SIGN_IN)]
  const isForAny = auth.local?.signInByMail?.anyBrowser === true
  if (isForAny && entry !== undefined) keys.push({ ...entry, kind: MAIL_SIGN_IN })
  noteEntry(request, entry === undefined ? MAIL_SIGN_IN : { ...entry, kind: isForAny ? MAIL_SIGN_IN : OPERATOR_LINK })
  for (const key of keys) {
    const pending = await findEntry<PendingMailSignIn>(request, key)
    if (pending?.id === id) return { pending, key }
  }
  const { entries } = auth.capabilities
  if (entry === undefined || entries === null) return null
  const key = { ...entry, kind: OPERATOR_LINK }
  const pending = await findEntry<OperatorSignIn>(request, key, entries)
  return pending?.id === id ? { pending: { ...pending, next: null }, key, entries } : null
}

/** Whether a link was used, in whatever browser. */
async function isUsedLink (auth: AuthContext, token: string): Promise<boolean> {
  const { userId: id } = await needed(auth.mailTokens, 'sendMail').verify('sign-in', token)
  return await auth.records.count(digestOf(id), USED_MAIL, Date.now() - PENDING_MS) > 0
}

/** Signs the owner of an address in, as the user who has it, or as a new one. */
async function signInOwner (
  auth: AuthContext, { request, outbox }: Submission<unknown>,
  { email, user: found, remember, asker, existing }: PendingMailSignIn & { existing: string }
): Promise<Principal> {
  await record(auth, USED_MAIL, asker)
  const mayRegister = auth.local?.registration != null
  const guest = mayRegister ? await guestOf(auth, request) : null
  const newId = mayRegister && guest === null ? randomUUID() : null
  const holds = (user: User): boolean => mayNeedFactor(auth, user)
  noteSubject(request, found?.userId)
  const onCreate = creating(auth, { method: 'mail', request })
  const proven = await auth.accounts.signInByMail({ user: found, email }, { newId, holds, existing, onCreate })
  const signsIn = { method: 'mail', tokens: null, remember, outbox } as const
  if (proven === null) {
    if (guest === null || found !== null) throw new AuthError('invalid_state')
    return signIn(auth, request, { ...promotionOf(request, guest, userOfMailbox(guest.userId, email)), ...signsIn })
  }
  const { user, links, as } = proven
  if (as === 'first-proof') {
    noteFirstProof({ request, outbox }, proven, existing)
    announceRevoke(auth.channel, user.userId, request)
  }
  return signIn(auth, request, {
    user,
    isNew: as === 'new' && 'user',
    held: as === 'held' ? 'confirms' : null,
    identity: identityOfUser(user, links),
    ...signsIn
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

/**
 * The page of a sign-in by mail. With the token of the link it has a button where the link signs
 * in, else it says where; without a token it asks for the code. Opening it uses nothing.
 */
export const mailLoginPage = page({ path: '/local/mail-login', when: hasMailSignIn }, async (auth, view) => {
  const { request, reply, next, failure, texts } = view
  const { titles, mail, factors, confirm } = texts
  const { redirects } = auth
  const query = new URL(request.url, ANY_ORIGIN).searchParams
  const token = failure === null ? query.get('token') : null
  const customPage = auth.mailPages?.mailLogin ?? null
  if (customPage !== null) {
    return redirected(reply, token === null ? customPage : withParameter(customPage, 'token', token))
  }
  await useOwner(request, id => keyOf(id, MAIL_SIGN_IN))
  const existingIn = async (pending: PendingMailSignIn | null) =>
    existingParts(auth, texts, pending && await unprovenIn(auth, request, await ownerOfMailbox(auth, pending)))
  const title = titles['sign-in']
  const path = auth.formPaths.get('local/mail-login/confirm')
  if (token !== null) {
    const found = await signInOfLink(auth, request, token)
    if (found === null) return { title, content: await ofUnusableLink(auth, view, token) }
    const { pending, pending: { email, next } } = found
    const { list, choice } = await existingIn('code' in pending ? pending : null)
    const hidden = { ...targetsOf(auth, 'local/mail-login', { next }), token }
    return {
      title,
      content: [
        html`<p>${sentence(mail.linkText, { email })}</p>`,
        htmlForm({ action: path, hidden, fields: list, submit: mail.submit, choice })
      ]
    }
  }

  const pending = await findEntry<PendingMailSignIn>(request, MAIL_SIGN_IN)
  const wait = Math.ceil(Number(query.get('retry_at')) - Date.now() / 1000)
  const held = wait > 0 && wait <= 3600 && html`<p>${filled(mail.wait, { time: duration(texts.language, wait) })}</p>`
  if (pending === null) {
    if (held) return { title, content: [held, waysOn(auth, request, texts)] }
    // The sign-in has expired, or another tab has finished it.
    const login = redirects.loginWith(request, next)
    return redirected(reply, login === null ? redirects.afterSuccess(request, next) : withError(login, 'invalid_state'))
  }
  const { email, remember } = pending
  const { list, choice } = await existingIn(pending)
  const hidden = targetsOf(auth, 'local/mail-login', { next: next ?? pending.next })
  const again = { ...hidden, email, remember: remember ? 'true' : null }
  return {
    title,
    content: [
      held,
      html`<p>${sentence(mail.codeText, { email })}</p>`,
      htmlForm({
        action: path,
        hidden,
        fields: [codeField('code', factors.mailCode, 'numeric'), list],
        submit: confirm.submit,
        choice
      }),
      action(auth.formPaths.get('local/mail-login'), again, mail.again, { look: 'plain' }),
      links([redirects.loginWith(request, hidden.next), mail.otherAddress])
    ]
  }
})

/** Says why a link signs in nobody here, and what to do. */
async function ofUnusableLink (auth: AuthContext, { request, next, texts }: View, token: string): Promise<Content> {
  const { mail, signIn, common } = texts
  const principal = await currentPrincipal(auth, request)
  if (principal !== null) {
    const user = nameOf(principal)
    const here = auth.redirects.afterSuccess(request, next)
    return [html`<p>${sentence(signIn.signedInAs, { user })}</p>`, button(here, common.continue, 'primary')]
  }
  const codePage = pathOf(auth, 'local/mail-login')
  const isReplaced = await findEntry(request, MAIL_SIGN_IN) !== null
  if (isReplaced) return [html`<p>${mail.newer}</p>`, waysOn(auth, request, texts, [codePage, texts.factors.mailCode])]
  if (!await isUsedLink(auth, token)) return [html`<p>${mail.elsewhere}</p>`, waysOn(auth, request, texts)]
  const again = auth.redirects.loginWith(request, next)
  return [html`<p>${mail.used}</p>`, waysOn(auth, request, texts, [again, mail.again])]
}
