import { randomUUID } from 'node:crypto'
import { digestOf } from '../../base/values.js'
import { type AuthContext, type WithAccounts, needed } from '../../core/context.js'
import { checkedEmail } from '../../email.js'
import { AuthError, invalidRequest } from '../../errors.js'
import {
  type Html, checkboxField, html, nameField, newPasswordField, usernameField
} from '../../core/pages/elements.js'
import { signIn } from '../../core/sign-in.js'
import { USED_REGISTRATION } from '../../session/store.js'
import { ACCEPTED, type FormAnswer, form, signedInAs } from '../../core/form.js'
import { NEW_PASSWORD_REFUSALS, email } from './forms.js'
import { filledIn, isChecked, remember, signedIn, token } from '../../core/schema.js'
import { textIn } from '../pages/parts.js'
import { createAccount, registeredJustNow } from './acts.js'
import type { Submission } from '../../core/submission.js'
import { hasMails, hasPasswords } from '../local/offers.js'
import { assertUnused, findByMailbox, isUsed } from '../mail-links.js'

/** More than the requests that use a link at once: none of them removes the record of another. */
const MOST_USES = 1000

/**
 * Takes the e-mail alone; the link in the mail leads to the form for name and password, which
 * creates a user whose address is confirmed, and signs them in. The link is used then.
 */
export const registerConfirmed = form({
  path: '/local/register',
  when: auth => hasMails(auth) && hasPasswords(auth) && auth.local?.registration?.verify === 'first',
  summary: 'Ask for the link to register, or register with its token',
  description: 'With the e-mail alone: sends a link to it; the answer is the same for each address, whether or not ' +
    'an account has it. With the token of the link and a password: registers the user and signs them in. ' +
    'A password without a token is refused.',
  user: 'anyone',
  fields: {
    email: { ...email, description: `${email.description}; without a token` },
    token,
    password: { type: 'string', description: '8 to 1024 bytes; with a token' },
    name: { type: 'string', maxLength: 1000, description: 'A display name; with a token' },
    role: {
      type: 'string', maxLength: 1000, description: 'An initial claim, if the application allows it; with a token'
    },
    remember: { ...remember, description: `${remember.description}; with a token` }
  },
  allowsExtraFields: true,
  answers: { 201: signedIn, 202: { type: 'null', description: 'Accepted: a mail follows' } },
  refuses: [
    'invalid_email', ...NEW_PASSWORD_REFUSALS, 'invalid_state', 'invalid_token', 'unauthenticated',
    'claim_not_allowed', 'exists', 'account_exists'
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
    async open (auth, { token, form, typed, texts: { common, titles } }) {
      const link = await openRegistration(auth, token)
      await assertUnused(auth.capabilities, link)
      const { minPasswordLength, registration } = needed(auth.local, 'local')
      const { roles } = needed(registration, 'registration')
      return {
        title: titles.register,
        content: form(titles.register, [
          usernameField(common.email, link.email),
          nameField(common.optionalName, textIn(typed.name)),
          newPasswordField(common, common.password, minPasswordLength),
          roles.length > 0 && choice('role', common.role, common.noRole, roles, textIn(typed.role)),
          auth.remember !== null && checkboxField('remember', common.remember, isChecked(typed.remember))
        ])
      }
    }
  }
}, async (auth, submission) => {
  const { request, fields: { email, token, name, role, remember } } = submission
  const password = filledIn(submission.fields.password)
  if (token === undefined) {
    // Not ignored: users of a page that asks for a password here would believe that it is set.
    if (email === undefined || password !== undefined) {
      throw invalidRequest('A registration begins with the e-mail alone; the password goes with the token of the mail.')
    }
    await sendLink(auth, submission, checkedEmail(email))
    return ACCEPTED
  }
  if (password === undefined) throw invalidRequest('A registration needs a password beside the token of the mail.')

  const link = await openRegistration(auth, token)
  const { accounts, capabilities: { entries } } = auth
  const fields = { email: link.email, password, name, role, remember }
  const signInAgain = async (refusal: unknown): Promise<FormAnswer> => {
    const known = await registeredJustNow(auth, submission, fields)
    if (known === null) throw refusal
    return signedInAs(await signIn(auth, request, known), 201)
  }
  if (await isUsed(auth.capabilities, link)) return signInAgain(new AuthError('invalid_token'))
  const owner = digestOf(link.userId)
  const use = { hash: digestOf(randomUUID()), kind: USED_REGISTRATION, owner, content: {}, startedAt: Date.now() }
  const userId = randomUUID()
  try {
    const authenticated = await createAccount(auth, submission, fields, {
      userId,
      isConfirmed: true,
      async before () {
        // Another request has used the link while this one hashed its password.
        if (await isUsed(auth.capabilities, link)) throw new AuthError('exists')
        if ((await accounts.findUser({ email: fields.email }))?.emailDisputed) throw new AuthError('account_exists')
        // Before there is an account: whatever crashes from now on, the link makes no second one.
        await entries?.put(use, MOST_USES)
      }
    })
    return signedInAs(await signIn(auth, request, authenticated), 201)
  } catch (error) {
    // No user is there, or no longer, as when `onSignIn` refuses them: the link works again.
    if (await accounts.findUser({ userId }) === null) await entries?.take(use.hash, use.kind, [owner])
    if (error instanceof AuthError && error.code === 'exists') return signInAgain(error)
    throw error
  }
})

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

/** Verifies the token of a link to register, and says what it confirms. */
async function openRegistration (
  { mailTokens }: Pick<AuthContext, 'mailTokens'>, token: string
): Promise<{ userId: string, email: string }> {
  const { userId, to } = await needed(mailTokens, 'sendMail').verify('register', token)
  return { userId, email: String(to) }
}

/** Makes a field in which the user may choose a value; `none` is the text of no value. */
function choice (name: string, label: string, none: string, choices: readonly string[], chosen: string | null): Html {
  return html`<label>${label}
<select name="${name}">
<option value="">${none}</option>
${choices.map(choice => html`<option${choice === chosen && html` selected`}>${choice}</option>`)}
</select></label>`
}
