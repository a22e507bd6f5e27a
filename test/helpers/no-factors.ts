import type { AuthContext } from '../../lib/core/context.js'

/** The context of an application without second factors and passkeys. */
export const NO_FACTORS: Pick<AuthContext, 'connectionRule' | 'methods' | 'offered' | 'requiresFactor'> =
  { connectionRule: null, methods: [], offered: [], requiresFactor: null }
