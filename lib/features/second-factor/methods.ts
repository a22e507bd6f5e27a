import type { Method } from '../../core/context.js'
import { filledIn } from '../../core/schema.js'

/** What codes of an app and recovery codes have in common: one form takes both. */
const byCode: Pick<Method, 'option' | 'isOffered' | 'ask' | 'verify'> = {
  option: 'secondFactor',
  isOffered: ({ parts }) => parts.secondFactor !== null,
  async ask (_auth, { texts: { confirm, factors } }, { action, hidden, field, look }) {
    const { codeField, html, htmlForm } = await import('../../core/pages/elements.js')
    const fields = [codeField('code', factors.code, 'text'), field]
    const form = htmlForm({ action, hidden, fields, submit: confirm.submit, look })
    return { content: [html`<p>${factors.codeText}</p>`, form] }
  },
  verify (auth, submission, owner) {
    const code = filledIn(submission.fields.code)
    return code === undefined
      ? null
      : import('./sign-in.js').then(async ({ verifyCode }) => verifyCode(auth, submission, code, owner))
  }
}

export const byApp: Method = {
  ...byCode,
  name: 'totp',
  factor: { isAlwaysDue: true, pages: async () => (await import('./authenticator.js')).APP_PAGES }
}

export const byRecoveryCode: Method = {
  ...byCode,
  name: 'recovery',
  factor: { pages: async () => (await import('./factors-page.js')).RECOVERY_PAGES }
}
