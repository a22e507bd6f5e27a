/** What users do with second factors and passkeys. It is loaded only with one of the options. */
import type { Act } from '../core/act.js'
import { finishSignIn, reauthenticate, secondFactor } from './second-factor/finish-sign-in.js'
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes, totp } from './second-factor/authenticator.js'
import {
  beginCeremony, passkeyScript, registerPasskey, removePasskey, renamePasskey, signInByPasskey
} from './passkeys/acts.js'

export const FACTOR_ACTS: readonly Act[] = [
  secondFactor, finishSignIn,
  totp, beginTotp, confirmTotp, removeTotp, renewRecoveryCodes,
  beginCeremony, registerPasskey, signInByPasskey, renamePasskey, removePasskey, passkeyScript,
  reauthenticate
]
