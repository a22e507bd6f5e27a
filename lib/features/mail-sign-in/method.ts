import type { Method } from '../../core/context.js'
import { hasMailSignIn } from '../local/offers.js'

export const byMail: Method = {
  name: 'mail',
  option: 'signInByMail of the LocalIdentityProvider',
  isOffered: hasMailSignIn,
  isOf: (_auth, { user: { email, emailDisputed } }) => email !== null && !emailDisputed,
  async ask (auth, { texts }, { hidden, email, isAlone }) {
    const { action } = await import('../../core/pages/elements.js')
    const path = auth.formPaths.get('local/mail-login')
    const look = isAlone ? 'primary' : 'plain'
    return { content: action(path, { ...hidden, email }, texts.mail.ask, { look }), isButton: true }
  }
}
