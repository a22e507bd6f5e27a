import { type Method, needed } from '../../core/context.js'

export const byPasskey: Method = {
  name: 'passkey',
  option: 'passkeys',
  isOffered: ({ parts }) => parts.passkeys !== null,
  factor: { signsIn: true, isReplaceable: true, pages: async () => (await import('./page.js')).PASSKEY_PAGES },
  async ask (auth, { texts }, { action, hidden, field, isAlone }) {
    const { passkeyForm } = await import('./page.js')
    const { optionsPath: options, scriptPath: script } = needed(auth.parts.passkeys, 'passkeys')
    const look = isAlone ? 'primary' : 'plain'
    const form = { ceremony: 'factor', options, action, hidden, fields: field, look } as const
    return { content: passkeyForm(texts, form), isButton: true, script }
  },
  async offer (auth, { texts, failure }, hidden) {
    const { createPasskeyField, passkeyForm, passkeySignal } = await import('./page.js')
    const { UnknownPasskey } = await import('./ceremonies.js')
    const { optionsPath: options, scriptPath: script, ...passkeys } = needed(auth.parts.passkeys, 'passkeys')
    const action = auth.formPaths.get('local/passkeys/login')
    const look = auth.formPaths.has('local/login') || auth.formPaths.has('local/mail-login') ? 'plain' : 'primary'
    const formOf = (ceremony: 'login' | 'autofill') => passkeyForm(texts, { ceremony, options, action, hidden, look })
    const { rpId } = passkeys.ceremonies.relyingParty
    return {
      way: formOf('login'),
      beside: formOf('autofill'),
      autofill: 'webauthn',
      fields: passkeys.createsOnPages && createPasskeyField,
      signals: failure instanceof UnknownPasskey &&
        passkeySignal('unknown-credential', { rpId, credentialId: failure.id }),
      script
    }
  },
  verify (auth, submission, owner) {
    const { response } = submission.fields
    return response === undefined || response === ''
      ? null
      : import('./sign-in.js').then(async ({ verifyResponse }) => verifyResponse(auth, submission, response, owner))
  }
}
