/** What users do with second factors and passkeys. It is loaded only with one of the options. */
import type { Act } from '../core/act.js'
import { finishSignIn, reauthenticateByFactor, secondFactorPage } from './second-factor/finish-sign-in.js'
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes, totpPage } from './second-factor/authenticator.js'
import {
  beginCeremony, passkeyScript, registerPasskey, removePasskey, renamePasskey, signInByPasskey
} from './passkeys/acts.js'

export const FACTOR_ACTS: readonly Act[] = [
  secondFactorPage, finishSignIn,
  totpPage, beginTotp, confirmTotp, removeTotp, renewRecoveryCodes,
  beginCeremony, registerPasskey, signInByPasskey, renamePasskey, removePasskey, passkeyScript,
  reauthenticateByFactor
]
