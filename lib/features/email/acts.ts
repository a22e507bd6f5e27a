import type { FastifyRequest } from 'fastify'
import type { User } from '../../accounts/account.js'
import type { ConfirmedEmail } from '../../accounts/credentials.js'
import { type UnprovenMethods, choiceRequired } from '../../accounts/sign-in.js'
import { announceRevoke, audit } from '../../audit.js'
import { type AuthContext, type WithAccounts, needed } from '../../core/context.js'
import { currentPrincipal, refreshPrincipal } from '../../core/current-user.js'
import { NOT_THIS_ADDRESS, checkedEmail, typedEmail } from '../../email.js'
import { AuthError } from '../../errors.js'
import { type MailToken, emailDigest, hasMailbox, userOfLink } from '../../core/mail-links.js'
import {
  dateIn, field, filled, html, links as linksTo, passwordField, section, sentence, usernameField
} from '../../core/pages/elements.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import { endOtherSessions } from '../../core/sign-out.js'
import { ACCEPTED, LINK_USED, form } from '../../core/form.js'
import { openLink } from '../../core/pages/link-page.js'
import { UNPROVEN, assertIsUser, changed, email, presentPassword, recentByPassword } from '../password/forms.js'
import { accepted, checkbox, done, isChecked, token } from '../../core/schema.js'
import { hasPasswords } from '../local/offers.js'
import { existingParts, textIn } from '../pages/parts.js'
import type { Submission } from '../../core/submission.js'
import { principalOf, recordIn } from '../../session/record.js'
import { sendVerification } from '../mail-links.js'

export const existing = {
  type: 'string',
  maxLength: 100,
  description: 'Where an address of the account is proven for the first time, by its signed-in user or with its ' +
    'password: `remove`, or `keep` of the refusal `choice_required`, which lists what the account has'
} as const

type Found = Pick<User, 'userId' | 'generation'>

/** Whether a request has a session of a user, which has not ended. */
function isOwnSession (request: FastifyRequest, { userId, generation }: Found): boolean {
  const record = recordIn(request.session)
  return record?.principal.userId === userId && record.generation === generation
}

/** What a page lists before its user chooses: nothing but in a session of the user. */
export async function unprovenIn (
  { accounts }: WithAccounts, request: FastifyRequest, user: Found | null, hasNewPassword?: boolean
): Promise<UnprovenMethods | null> {
  return user !== null && isOwnSession(request, user) ? accounts.unprovenMethods(user, hasNewPassword) : null
}

/**
 * Returns what becomes of what an account has, and uses nothing. In a session of the user they must
 * have seen it: another person may have made the account, and left its session in this browser.
 *
 * @throws AuthError `choice_required`; `unauthenticated` for a choice to keep something elsewhere
 */
export async function existingOf (
  { accounts }: WithAccounts, request: FastifyRequest, user: Found,
  { existing = '', hasNewPassword, isOwner = isOwnSession(request, user) }:
  { existing?: string | undefined, hasNewPassword?: boolean, isOwner?: boolean }
): Promise<string> {
  const isRemoved = existing === 'remove' || (existing === '' && !isOwner)
  const unproven = isRemoved ? null : await accounts.unprovenMethods(user, hasNewPassword)
  if (unproven === null) return 'remove'
  if (!isOwner) throw new AuthError('unauthenticated')
  if (existing !== unproven.keep) throw choiceRequired(unproven)
  return existing
}

/** Records a first proof of an address, by what became of what the account had. */
export function auditFirstProof (
  request: FastifyRequest, { user, removed }: Pick<ConfirmedEmail, 'user' | 'removed'>, existing: string
): void {
  const { userId, claims } = user
  if (existing === 'remove') audit('recovery', { userId, removed: [...removed], claims }, request)
  else audit('verification', { userId, verified: true }, request)
}

/** Records a first proof of an address, and tells the user where it has removed what was there. */
export function noteFirstProof (
  { request, outbox }: Pick<Submission<unknown>, 'request' | 'outbox'>,
  proof: Pick<ConfirmedEmail, 'user' | 'removed'>,
  existing: string
): void {
  auditFirstProof(request, proof, existing)
  if (existing === 'remove') outbox.notice('email-proven', proof.user)
}

/**
 * Sends a link to a new or first address of the signed-in user, and tells the present one. Nothing
 * is stored and the address is not looked up, so the answer is the same whether or not it is taken.
 */
export const requestNewEmail = form({
  path: '/local/change-email',
  when: ({ local }) => local?.accountRoutes.changeEmail === true,
  summary: 'Ask for a link to a new e-mail address of the signed-in user',
  description: 'The answer is the same whether or not another account has the address.',
  user: 'signed-in',
  fields: { email, current: presentPassword },
  required: ['email'],
  answers: { 202: accepted },
  refuses: [...UNPROVEN, 'invalid_email', 'sso_required'],
  hashes: 'current',
  bodyLimit: 'mail',
  isSignInAttempt: true
}, async (auth, submission) => {
  const { request, fields: { email, current }, outbox } = submission
  outbox.refuseWhenFull()
  const { user, record: { generation } } = await recentByPassword(auth, submission, current)
  const to = checkedEmail(email)
  await refuseNewEmail(auth, user, to)
  await auth.limits.newEmail(request)
  outbox.link('change-email', { ...user, generation, to }, user)
  outbox.notice('email-change-requested', user)
  return ACCEPTED
})

/**
 * Changes the e-mail of a user who has confirmed the new one and is signed in or gives their
 * password. All other sessions of the user end. For the first address the user has seen what the
 * account has: a stranger may have asked for the link, and left their session in this browser.
 */
export const confirmNewEmail = form({
  path: '/local/change-email/confirm',
  when: ({ local }) => local?.accountRoutes.changeEmail === true,
  summary: 'Confirm a new e-mail address',
  user: 'signed-in-or-not',
  fields: {
    token,
    password: { type: 'string', description: 'The password of the account, where its user is not signed in' },
    existing
  },
  required: ['token'],
  answers: { 204: changed },
  refuses: [
    'invalid_state', 'invalid', 'invalid_token', 'unauthenticated', 'choice_required', 'sso_required', 'exists'
  ],
  hashes: 'password',
  bodyLimit: 'code',
  linkPage: {
    kind: 'change-email',
    summary: 'The page that confirms a new e-mail address',
    user: 'signed-in-or-not',
    customPage: 'changeEmail',
    async open (auth, { request, token, form, texts }) {
      const { common, signIn, confirm, titles, links } = texts
      const { user, to } = await openNewEmail(auth, token)
      const { userId, email } = user
      const title = titles['change-email']
      const isUser = principalOf(request)?.userId === userId
      const way = [html`<p>${links.addSignIn}</p>`, linksTo([auth.redirects.login(request), signIn.title])]
      if (email === null) {
        const { list, choice } = existingParts(auth, texts, await unprovenIn(auth, request, user))
        const content = isUser ? form(confirm.submit, list, { choice }) : way
        return { title, content: [html`<p>${sentence(links.addText, { to })}</p>`, content] }
      }
      const text = html`<p>${sentence(links.changeText, { to, email })}</p>`
      if (!isUser && !hasPasswords(auth)) return { title, content: [text, way] }
      return {
        title,
        content: [
          text,
          !isUser && html`<p>${links.changePassword}</p>`,
          form(confirm.submit, !isUser && [usernameField(common.email, email), passwordField(common.password)])
        ]
      }
    }
  }
}, async (auth, submission) => {
  const { request, fields: { token, existing: chosen }, outbox } = submission
  const { accounts } = auth
  const { user, link, to } = await openNewEmail(auth, token)
  const { userId, email } = user
  await assertIsUser(auth, submission, userId).catch(async (error: unknown) => {
    // A link that is used meanwhile moves the account: its password was not found then.
    await userOfLink(accounts, link)
    throw error
  })
  await refuseNewEmail(auth, user, to)
  const existing = email === null
    ? await existingOf(auth, request, user, { existing: chosen, isOwner: true })
    : null
  const proof = await accounts.changeEmail(user, to, existing)
  if (proof === null) throw new AuthError('invalid_token')
  audit('email', { userId, verified: true }, request)
  if (existing === 'remove' && !proof.wasProven) noteFirstProof(submission, proof, existing)
  outbox.notice('email-changed', user)
  await endOtherSessions(auth, request, userId)
  if (principalOf(request)?.userId === userId) await refreshPrincipal(auth, request)
  return LINK_USED
})

/** Refuses to leave a domain whose users sign in by a connection, and to come to one. */
async function refuseNewEmail (
  auth: Pick<AuthContext, 'connectionRule'>, user: Pick<User, 'userId' | 'email'>, to: string
): Promise<void> {
  await refuseOtherWays(auth, user)
  await refuseOtherWays(auth, { ...user, email: to })
}

async function openNewEmail (
  { accounts, mailTokens }: Pick<AuthContext, 'accounts' | 'mailTokens'>, token: string
): Promise<{ user: User, link: MailToken, to: string }> {
  const link = await needed(mailTokens, 'sendMail').verify('change-email', token)
  return { user: await userOfLink(accounts, link), link, to: String(link.to) }
}

/**
 * Confirms the address of an account by a link, together with a session of the user or their
 * password: the link alone proves who has the mailbox, not that this person made the account. The
 * form also frees an address that another person registered, and asks for the link.
 */
export const verifyEmail = form({
  path: '/local/verify-email',
  summary: 'Confirm an address by the link in a mail, or ask for the link',
  description: 'With a token: confirms the address of the account, for its signed-in user or with its password; ' +
    'or, with `not_me` and the address, frees an address that another person registered. ' +
    'Without a token: sends the link to the address of the signed-in user.',
  user: 'signed-in-or-not',
  fields: {
    token,
    password: { type: 'string', description: 'Needed where the user is not signed in' },
    existing,
    not_me: { ...checkbox, description: 'A checkbox: another person registered the address' },
    email: { ...email, description: 'With `not_me`: the address that the mail was sent to' }
  },
  answers: { 202: accepted, 204: done },
  refuses: [
    'invalid_token', 'invalid_email', 'email_missing', 'unauthenticated', 'invalid', 'choice_required', 'user_in_use',
    'sso_required'
  ],
  hashes: 'password',
  bodyLimit: 'mailOrCode',
  linkPage: {
    kind: 'verify-email',
    summary: 'The page of the link that confirms an address',
    user: 'anyone',
    customPage: 'verifyEmail',
    // No text is one that the person who registered chose: they may be a stranger to the reader.
    async open (auth, { request, token, form, typed, texts }) {
      const { language, common, signIn, titles, links } = texts
      const { user } = await openLink(auth, 'verify-email', token)
      const { userId, email, createdAt, emailVerified } = user
      const isUser = principalOf(request)?.userId === userId
      const asksPassword = !isUser && hasPasswords(auth)
      const { list, choice } = existingParts(auth, texts, await auth.accounts.unprovenMethods(user))
      const address = field({
        name: 'email', label: links.releaseField, type: 'email', autocomplete: 'email', value: textIn(typed.email)
      })
      return {
        title: titles['verify-email'],
        content: [
          html`<p>${filled(links.verifyText, { date: dateIn(language, createdAt) })}</p>`,
          section(links.itWasYou, [
            !isUser && [
              html`<p>${asksPassword ? links.changePassword : links.addSignIn}</p>`,
              linksTo([auth.redirects.login(request), signIn.title])
            ],
            (isUser || asksPassword) && form(links.verifySubmit, [
              usernameField(common.email, email), asksPassword && passwordField(common.password), list
            ], { choice })
          ]),
          !emailVerified && section(links.itWasNotYou, form(links.releaseSubmit, address, {
            hidden: { not_me: 'true' }, look: 'danger'
          }))
        ]
      }
    }
  }
}, async (auth, submission) => {
  const { request, fields: { token, existing: chosen, not_me: isNotMe, email = '' } } = submission
  if (token === undefined) {
    await sendLink(auth, submission)
    return ACCEPTED
  }
  if (isChecked(isNotMe)) {
    await releaseEmail(auth, submission, { token, email })
    return LINK_USED
  }
  const { user } = await openLink(auth, 'verify-email', token)
  const { userId } = user
  await assertIsUser(auth, submission, userId)
  await refuseOtherWays(auth, user)
  const existing = await existingOf(auth, request, user, { existing: chosen, isOwner: true })
  const proof = await auth.accounts.verifyEmail(user, existing)
  if (proof === null) throw new AuthError('invalid_token')
  if (proof === 'unchanged') return LINK_USED
  noteFirstProof(submission, proof, proof.wasProven ? 'keep' : existing)
  if (!proof.wasProven) await endOtherSessions(auth, request, userId)
  // Ends a session by what was removed.
  if (principalOf(request)?.userId === userId) await refreshPrincipal(auth, request)
  return LINK_USED
})

async function sendLink (
  auth: WithAccounts & Pick<AuthContext, 'connectionRule'>, { request, outbox }: Submission<unknown>
): Promise<void> {
  outbox.refuseWhenFull()
  const principal = await currentPrincipal(auth, request)
  const user = principal === null ? null : await auth.accounts.findUser({ userId: principal.userId })
  if (user === null) throw new AuthError('unauthenticated')
  if (!hasMailbox(user)) throw new AuthError('email_missing')
  await refuseOtherWays(auth, user)
  sendVerification(user, outbox)
}

/**
 * Frees an address that another person registered, unless the user has owned one of the account:
 * deletes it, or removes the address when there are other sign-in methods. The address must be
 * typed again, because programs that examine mails send forms too.
 */
async function releaseEmail (
  auth: AuthContext, { request }: Submission<unknown>, { token, email }: { token: string, email: string }
): Promise<void> {
  const { userId, generation, digest } = await needed(auth.mailTokens, 'sendMail').verify('verify-email', token)
  const typed = typedEmail(email)
  if (typed === null || emailDigest(typed) !== digest) {
    throw new AuthError('invalid_email', { message: NOT_THIS_ADDRESS })
  }
  const outcome = await auth.accounts.releaseEmail({ userId, email: typed, generation })
  if (outcome === null) throw new AuthError('invalid_token')
  audit('email-released', { userId, deleted: outcome === 'deleted' }, request)
  announceRevoke(auth.channel, userId, request)
}
