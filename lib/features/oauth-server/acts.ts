import type { Act } from '../../core/act.js'
import { endOwnGrant } from './account.js'
import { AUTHORIZE_ACTS } from './authorize.js'
import { DEVICE_ACTS } from './device.js'

export const OAUTH_ACTS: readonly Act[] = [...AUTHORIZE_ACTS, ...DEVICE_ACTS, endOwnGrant]
