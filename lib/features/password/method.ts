import { pathOf } from '../../core/act.js'
import { type AuthContext, type Method, type Owner, type Proven, hasPasswords } from '../../core/context.js'
import { refusePasswordWhenBusy } from './forms.js'
import { filledIn } from '../../core/schema.js'
import { type PasswordSubmission, verifyPassword } from '../../core/recent.js'

export const byPassword: Method = {
  name: 'password',
  option: 'local',
  isOffered: hasPasswords,
  isOf: (_auth, { links }) => links.some(({ provider }) => provider === 'local'),
  async ask (auth, { texts: { common, confirm } }, { action, hidden, email }) {
    const { htmlForm, passwordField, usernameField } = await import('../../core/pages/elements.js')
    const fields = [usernameField(common.email, email), passwordField(common.password)]
    return { content: htmlForm({ action: pathOf(auth, action), hidden, fields, submit: confirm.submit }) }
  },
  verify (auth, submission, owner) {
    const { request, passwords, fields } = submission
    const password = filledIn(fields.password)
    return password === undefined || passwords === undefined
      ? null
      : verifyCounted(auth, { request, passwords }, password, owner)
  }
}

async function verifyCounted (
  auth: AuthContext, submission: PasswordSubmission, password: string, owner: Owner
): Promise<Proven> {
  const { request } = submission
  refusePasswordWhenBusy(request)
  await auth.limits.reauthenticate(request)
  return verifyOwn(auth, submission, password, owner)
}

/** Authenticates a user by their password. */
export async function verifyOwn (
  { accounts }: AuthContext, submission: PasswordSubmission, password: string, owner: Owner
): Promise<Proven> {
  const { userId, links } = await owner()
  const credential = await accounts.credentialOf(userId, links)
  await verifyPassword(submission, password, credential)
  return { user: null, proof: { method: 'password', at: Date.now() }, codesLeft: null }
}
