import { pathOf } from '../core/act.js'
import { type Method, hasMailSignIn } from '../core/context.js'

export const byMail: Method = {
  name: 'mail',
  option: 'signInByMail of the LocalIdentityProvider',
  isOffered: hasMailSignIn,
  isOf: (_auth, { user: { email, emailDisputed } }) => email !== null && !emailDisputed,
  async ask (auth, { texts }, { hidden, email }) {
    const { action } = await import('../core/pages/elements.js')
    return { content: action(pathOf(auth, 'local/mail-login'), { ...hidden, email }, texts.mail.ask), isButton: true }
  }
}
