/** The routes of second factors and passkeys. They are loaded only with one of the options. */
import { AuthError } from '../errors.js'
import { readResponse } from '../factors/passkey-ceremonies.js'
import { passwordMethod } from '../flows/methods.js'
import { reauthenticate } from '../flows/reauthentication.js'
import type { FactorRules } from '../flows/sign-in-rules.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import type { PagesContext } from './context.js'
import { mountForm } from './form-route.js'
import type { Limit } from './limits.js'
import { filledIn, password, passwordsFor, refusePasswordWhenBusy } from './password-forms.js'
import { factorCode, passkeyResponse } from './schema-parts.js'

/** Mounts the routes of the factors that the application has options for. */
export async function mountFactors (
  context: PagesContext, factors: FactorRules, local: LocalIdentityProvider | null
): Promise<void> {
  const { rules, channel, limits } = context
  const { secondFactor, passkeys, sealer } = factors
  const ofCodes = secondFactor && { ...rules, channel, factors: { ...factors, secondFactor } }
  const ofPasskeys = passkeys && { ...rules, channel, factors: { ...factors, passkeys } }

  /** Counts what has the form of a response; anything else is refused, and counts for nothing. */
  const countResponse: Limit = async request => {
    if (readResponse(Object(request.body).response) !== null) await limits.factor(request)
  }

  // A sign-in that waits is sealed.
  if (sealer !== null) {
    const { mountSecondStep } = await import('./second-factor.js')
    mountSecondStep(context, { ofCodes, ofPasskeys, rules: { ...rules, factors }, countResponse })
  }
  if (ofPasskeys !== null) {
    const { mountPasskeys } = await import('./passkeys.js')
    mountPasskeys({ ...context, rules: ofPasskeys, countResponse })
  }

  mountForm(context, {
    path: '/local/reauthenticate',
    summary: 'Authenticate the signed-in user again',
    description: 'By a password, a code or a passkey.',
    user: 'signed-in',
    fields: { password, code: factorCode, response: passkeyResponse },
    answers: { 204: { type: 'null', description: 'Done: the session has a new id' } },
    refuses: ['invalid_state', 'invalid', 'invalid_code', 'rate_limited', 'busy'],
    isSignInAttempt: true
  }, async form => {
    const { request, fields: { response }, outbox } = form
    const [code, password] = [filledIn(form.fields.code), filledIn(form.fields.password)]
    if (code !== undefined && ofCodes !== null) {
      await limits.factor(request)
      const { reauthenticateByCode } = await import('../flows/factor-codes.js')
      await reauthenticateByCode(request, ofCodes, code, outbox)
    } else if (response !== undefined && response !== '' && ofPasskeys !== null) {
      await countResponse(request)
      const { reauthenticateByPasskey } = await import('../flows/passkeys.js')
      await reauthenticateByPasskey(request, ofPasskeys, response, outbox)
    } else if (password !== undefined && local !== null) {
      refusePasswordWhenBusy(request)
      await limits.reauthenticate(request)
      await reauthenticate(request, rules.store, passwordMethod(password, passwordsFor(local, form)))
    } else throw new AuthError('invalid_request', { message: 'The form has nothing to authenticate the user by.' })
  })
}
