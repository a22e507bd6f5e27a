import type { AuthContext } from '../../lib/core/context.js'

/** The context of an application without second factors and passkeys. */
export const NO_FACTORS: AuthContext['factors'] = { secondFactor: null, passkeys: null, sealer: null }
