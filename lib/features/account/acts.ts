import { announceRevoke, audit } from '../../audit.js'
import { checkedName } from '../../claims.js'
import { current, refreshPrincipal } from '../../core/current-user.js'
import { recent } from '../recent.js'
import { AuthError } from '../../errors.js'
import { callHook } from '../../hooks.js'
import { refuseOtherWays } from '../../core/required-connection.js'
import { endOtherSessions, signOut } from '../../core/sign-out.js'
import { form } from '../../core/form.js'
import { UNPROVEN, presentPassword, recentByPassword } from '../password/forms.js'
import { canSignIn } from '../../core/methods.js'
import { leftUnverified, sendVerification } from '../mail-links.js'

export const deleteAccount = form({
  path: '/local/delete-account',
  when: ({ local }) => local?.accountRoutes.deleteAccount === true,
  summary: 'Delete the account of the signed-in user',
  user: 'signed-in',
  fields: { current: presentPassword },
  answers: { 204: { type: 'null', description: 'Deleted, and signed out' } },
  refuses: [...UNPROVEN, 'user_in_use'],
  hashes: 'current',
  isSignInAttempt: true
}, async (auth, submission) => {
  const { request, reply, fields } = submission
  const { user: { userId }, record: { generation } } = await recentByPassword(auth, submission, fields.current)
  // Again, because passwords may wait for some time: what the hook does is not undone.
  await current(auth, request)
  await callHook(() => auth.onDelete?.({ request, userId }))
  if (!await auth.accounts.deleteUser(userId, generation)) throw new AuthError('unauthenticated')
  audit('deletion', { userId }, request)
  announceRevoke(auth.channel, userId, request)
  await signOut(auth, request, reply, userId)
})

/** Changes the name of the signed-in user; an empty one removes it. */
export const rename = form({
  path: '/pages/name',
  summary: 'Change the name of the signed-in user',
  user: 'signed-in',
  fields: { name: { type: 'string', maxLength: 1000, description: 'An empty one removes it' } },
  required: ['name'],
  refuses: ['unauthenticated']
}, async (auth, { request, fields: { name } }) => {
  const { user: { userId, generation } } = await current(auth, request)
  await auth.accounts.changeUser(userId, { name: checkedName(name) }, generation)
  audit('name', { userId }, request)
  await refreshPrincipal(auth, request)
})

export const removeMethod = form({
  path: '/pages/unlink',
  summary: 'Remove a sign-in method of the signed-in user',
  description: 'The last authentication must be less than ten minutes old. All other sessions of the user end.',
  user: 'signed-in',
  fields: { provider: { type: 'string', maxLength: 64, description: 'The name of the provider, or `local`' } },
  required: ['provider'],
  refuses: ['unauthenticated', 'reauthenticate', 'sso_required', 'last_link', 'not_found']
}, async (auth, { request, fields: { provider }, outbox }) => {
  const { user, links, record: { generation } } = await recent(auth, request)
  const { userId } = user
  await refuseOtherWays(auth, user)
  if (!links.some(link => link.provider === provider)) {
    throw new AuthError('not_found', { message: 'The user has no such sign-in method.' })
  }
  await auth.accounts.removeLink(userId, provider, generation, (...left) => canSignIn(auth, ...left))
  audit('unlink', { userId, provider }, request)
  // To the address as it was until now: the link may have vouched for it.
  outbox.notice('identity-unlinked', user)
  await endOtherSessions(auth, request, userId)
  const unverified = await leftUnverified(auth.accounts, user)
  if (unverified !== null) sendVerification(unverified, outbox)
})
