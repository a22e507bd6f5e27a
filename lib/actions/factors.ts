/** What users do with second factors and passkeys. It is loaded only with one of the options. */
import type { Act } from '../web/act.js'
import { secondFactor } from './pages/second-factor.js'
import { totp } from './pages/totp.js'
import {
  beginCeremony, passkeyScript, registerPasskey, removePasskey, renamePasskey, signInByPasskey
} from './passkeys.js'
import { finishSignIn, reauthenticate } from './second-factor.js'
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes } from './totp.js'

export const FACTOR_ACTS: readonly Act[] = [
  secondFactor, finishSignIn,
  totp, beginTotp, confirmTotp, removeTotp, renewRecoveryCodes,
  beginCeremony, registerPasskey, signInByPasskey, renamePasskey, removePasskey, passkeyScript,
  reauthenticate
]
