import type { AuthContext, Method, Owner, ProofFields, ProofSubmission, Proven } from '../../core/context.js'
import { hasPasswords } from '../local/offers.js'
import type { HashingSubmission } from '../../core/submission.js'
import { verifyPassword } from './forms.js'
import { filledIn } from '../../core/schema.js'

export const byPassword: Method = {
  name: 'password',
  option: 'local',
  isOffered: hasPasswords,
  isOf: (_auth, { links }) => links.some(({ provider }) => provider === 'local'),
  async ask (_auth, { texts: { common, confirm } }, { action, hidden, email, look }) {
    const { htmlForm, passwordField, usernameField } = await import('../../core/pages/elements.js')
    const fields = [usernameField(common.email, email), passwordField(common.password)]
    return { content: htmlForm({ action, hidden, fields, submit: confirm.submit, look }) }
  },
  verify (auth, submission, owner) {
    const password = filledIn(submission.fields.password)
    return password !== undefined && isHashing(submission) ? verifyCounted(auth, submission, password, owner) : null
  }
}

function isHashing (submission: ProofSubmission): submission is HashingSubmission<ProofFields> {
  return 'passwords' in submission
}

async function verifyCounted (
  auth: AuthContext, submission: HashingSubmission<unknown>, password: string, owner: Owner
): Promise<Proven> {
  const { request } = submission
  await auth.passwords?.refuseWhenBusy(request, true)
  await auth.limits.reauthenticate(request)
  return verifyOwn(auth, submission, password, owner)
}

/** Authenticates a user by their password. */
export async function verifyOwn (
  { accounts }: Pick<AuthContext, 'accounts'>, submission: HashingSubmission<unknown>, password: string, owner: Owner
): Promise<Proven> {
  const { userId, links } = await owner()
  const credential = await accounts.credentialOf(userId, links)
  await verifyPassword(submission, password, credential)
  return { user: null, proof: { method: 'password', at: Date.now() }, codesLeft: null }
}
