import { randomUUID } from 'node:crypto'
import { digestOf } from '../../base/values.js'
import { checkedName } from '../../claims.js'
import { nextOfMail } from '../../core/act.js'
import { type AuthContext, type WithAccounts, needed } from '../../core/context.js'
import type { Findings } from '../../core/findings.js'
import { checkedEmail } from '../../email.js'
import { AuthError, invalidRequest } from '../../errors.js'
import {
  type Html, action, checkboxField, html, labelled, nameField, newPasswordField, usernameField, ways
} from '../../core/pages/elements.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import { signIn } from '../../core/sign-in.js'
import { guestOf } from '../../core/guests.js'
import { USED_REGISTRATION } from '../../session/store.js'
import { ACCEPTED, type FormAnswer, form, signedInAs } from '../../core/form.js'
import { NEW_PASSWORD_REFUSALS, email } from './forms.js'
import { filledIn, isChecked, remember, signedIn, token } from '../../core/schema.js'
import { textIn } from '../pages/parts.js'
import { createAccount, initialClaims, registeredJustNow } from './acts.js'
import type { HashingSubmission, Submission } from '../../core/submission.js'
import { canRegister, canRegisterByPasskey, hasMails, hasPasswords } from '../local/offers.js'
import {
  type Registration, assertFree, findByMailbox, isUsed, openRegistration, readRegistration
} from '../mail-links.js'
import { passkeyResponse } from '../second-factor/schema.js'

/** More than the requests that use a link at once: none of them removes the record of another. */
const MOST_USES = 1000

/** On the page, the script sends these fields with a passkey too. */
const ALONG = html` data-passkey-along`

/**
 * Takes the e-mail alone; the link in the mail leads to the form for name and password, or for a
 * passkey in its place, which creates a user whose address is confirmed, and signs them in. The
 * link is used then.
 */
export const registerConfirmed = form({
  path: '/local/register',
  when: auth => hasMails(auth) && canRegister(auth) && auth.local?.registration?.verify === 'first',
  summary: 'Ask for the link to register, or register with its token',
  description: 'With the e-mail alone: sends a link to it; the answer is the same for each address, whether or not ' +
    'an account has it. With the token of the link and a password, or a passkey where the application has them: ' +
    'registers the user and signs them in. A password or a passkey without a token is refused.',
  user: 'anyone',
  fields: {
    email: { ...email, description: `${email.description}; without a token` },
    token,
    password: { type: 'string', description: '8 to 1024 bytes; with a token' },
    response: { ...passkeyResponse, description: `${passkeyResponse.description}; with a token, not with a password` },
    name: { type: 'string', maxLength: 1000, description: 'A display name; with a token' },
    role: {
      type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it; with a token'
    },
    remember: { ...remember, description: `${remember.description}; with a token` }
  },
  allowsExtraFields: true,
  answers: { 201: signedIn, 202: { type: 'null', description: 'Accepted: a mail follows' } },
  refuses: [
    'invalid_email', ...NEW_PASSWORD_REFUSALS, 'invalid', 'invalid_state', 'invalid_token', 'unauthenticated',
    'claim_not_allowed', 'exists', 'account_exists', 'sso_required'
  ],
  hashes: 'password',
  async bodyLimit (request, { limits }) {
    await limits.register(request)
    await limits.mailOrCode(request)
  },
  isSignInAttempt: true,
  linkPage: {
    kind: 'register',
    summary: 'The page that registers a user whose address is confirmed',
    user: 'anyone',
    customPage: 'register',
    async open (auth, view) {
      const { request, token, form, typed, texts } = view
      const { common, titles } = texts
      const { email } = await openRegistration(auth, token)
      const { minPasswordLength, registration } = needed(auth.local, 'local')
      const { roles } = needed(registration, 'registration')
      const username = usernameField(common.email, email)
      const name = nameField(common.optionalName, textIn(typed.name), ALONG)
      const others = [
        roles.length > 0 && choice('role', common.role, common.noRole, roles, textIn(typed.role)),
        auth.remember !== null && checkboxField('remember', common.remember, isChecked(typed.remember))
      ]
      const byPassword = hasPasswords(auth) && form(titles.register, [
        username, name, newPasswordField(common, common.password, minPasswordLength), others
      ])
      if (!canRegisterByPasskey(auth)) return { title: titles.register, content: byPassword }
      const { signUpForm } = await import('../passkeys/sign-up.js')
      const byPasskey = signUpForm(auth, view, !byPassword && [name, others], byPassword ? 'plain' : 'primary')
      // For browsers without scripts, or without passkeys.
      const byMail = !byPassword && action(
        auth.formPaths.get('local/mail-login'), { email, next: nextOfMail(auth, request) }, texts.mail.ask,
        { look: 'plain' })
      return {
        title: titles.register,
        script: byPasskey.script,
        content: [!byPassword && username, ways(texts.signIn.or, byPassword, byPasskey.content, byMail)]
      }
    }
  }
}, async (auth, submission) => {
  const { fields: { email, token, response } } = submission
  const password = filledIn(submission.fields.password)
  const hasPasskey = response !== undefined && response !== ''
  if (token === undefined) {
    // Not ignored: users of a page that asks for a password here would believe that it is set.
    if (email === undefined || password !== undefined || hasPasskey) {
      throw invalidRequest('A registration begins with the e-mail alone; the password or the passkey goes with the ' +
        'token of the mail.')
    }
    const to = checkedEmail(email)
    await refuseOtherWays(auth, { email: to, userId: null })
    await sendLink(auth, submission, to)
    return { ...ACCEPTED, asked: { form: 'register', email: to } }
  }
  const link = await readRegistration(auth, token)
  await refuseOtherWays(auth, { email: link.email, userId: null })
  if (hasPasskey && password === undefined && canRegisterByPasskey(auth)) {
    return registerByPasskey(auth, submission, link, response)
  }
  if (password !== undefined && !hasPasskey && hasPasswords(auth)) {
    return registerByPassword(auth, submission, link, password)
  }
  throw invalidRequest('A registration needs a password or, where the application has them, a passkey beside the ' +
    'token of the mail.')
})

interface Fields {
  readonly name?: string
  readonly role?: string
  readonly remember?: boolean | string
}

async function registerByPassword (
  auth: AuthContext, submission: HashingSubmission<Fields>, link: Registration, password: string
): Promise<FormAnswer> {
  const { name, role, remember } = submission.fields
  const fields = { email: link.email, password, name, role, remember }
  const signInAgain = async (refusal: unknown): Promise<FormAnswer> => {
    const known = await registeredJustNow(auth, submission, fields)
    if (known === null) throw refusal
    return signedInAs(await signIn(auth, submission.request, known), 201)
  }
  if (await isUsed(auth.capabilities, link)) return signInAgain(new AuthError('invalid_token'))
  const userId = randomUUID()
  const guest = await guestOf(auth, submission.request)
  return useLink(auth, submission, link, {
    userId,
    create: async before => createAccount(auth, submission, fields, { userId, isConfirmed: true, guest, before })
  }).catch(async (error: unknown) => {
    if (error instanceof AuthError && error.code === 'exists') return signInAgain(error)
    throw error
  })
}

async function registerByPasskey (
  auth: AuthContext, submission: Submission<Fields>, link: Registration, response: unknown
): Promise<FormAnswer> {
  if (await isUsed(auth.capabilities, link)) throw new AuthError('invalid_token')
  const { request, fields: { name: typed, role, remember } } = submission
  const claims = initialClaims(auth, { role: filledIn(role), saysVerified: false })
  const name = checkedName(typed?.trim() ?? '')
  const { createByPasskey } = await import('../passkeys/sign-up.js')
  return useLink(auth, submission, link, {
    userId: link.userId,
    create: async before => ({
      ...await createByPasskey(auth, { request, response }, { ...link, name, claims }, before),
      remember: isChecked(remember)
    })
  })
}

/**
 * Signs in the user whom a link creates. The link is used then.
 *
 * @param how `userId`: the id of the user; `create`: takes what comes right before there is one
 */
async function useLink (
  auth: AuthContext,
  { request }: Submission<unknown>,
  link: Registration,
  { userId, create }: { userId: string, create: (before: () => Promise<void>) => Promise<Findings> }
): Promise<FormAnswer> {
  const { accounts, capabilities: { entries } } = auth
  const owner = digestOf(link.userId)
  const use = { hash: digestOf(randomUUID()), kind: USED_REGISTRATION, owner, content: {}, startedAt: Date.now() }
  const before = async (): Promise<void> => {
    // Another request has used the link while this one hashed its password, or verified a passkey.
    if (await isUsed(auth.capabilities, link)) throw new AuthError('exists')
    await assertFree(accounts, link.email)
    // Before there is an account: whatever crashes from now on, the link makes no second one.
    await entries?.put(use, MOST_USES)
  }
  try {
    return signedInAs(await signIn(auth, request, await create(before)), 201)
  } catch (error) {
    // No user has come of it, or is left, as when `onSignIn` refuses them: the link works again. Of
    // two passkeys at once, the one that was late has the id of the user whom the other one made.
    const isTaken = error instanceof AuthError && error.code === 'exists'
    if (isTaken || await accounts.findUser({ userId }) === null) await entries?.take(use.hash, use.kind, [owner])
    throw error
  }
}

/**
 * Sends the link to an address in canonical form; to one that an account has, a mail that says so.
 * The answer follows one look-up for each address, so that its time tells nothing either.
 */
async function sendLink ({ accounts }: WithAccounts, { outbox }: Submission<unknown>, email: string): Promise<void> {
  outbox.refuseWhenFull()
  const user = await findByMailbox(accounts, email)
  if (user === null) outbox.link('register', { userId: randomUUID(), generation: 0, email, to: email }, null)
  else outbox.sendTo('exists', email, user)
}

/** Makes a field in which the user may choose a value; `none` is the text of no value. */
function choice (name: string, label: string, none: string, choices: readonly string[], chosen: string | null): Html {
  return labelled({ name, label }, html`<select class="input" data-part="input" name="${name}"${ALONG}>
<option value="">${none}</option>
${choices.map(choice => html`<option${choice === chosen && html` selected`}>${choice}</option>`)}
</select>`)
}
