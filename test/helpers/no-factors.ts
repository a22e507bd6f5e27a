import type { FactorRules } from '../../lib/context.js'

/** The context of an application without second factors and passkeys. */
export const NO_FACTORS: FactorRules = { secondFactor: null, passkeys: null, sealer: null }
