/**
 * Second factors: codes of authenticator apps, recovery codes.
 *
 * @module fastify-svc-auth/second-factor
 */
export {
  type FirstFactor, type ProviderProof, SecondFactor, type SecondFactorOptions
} from './features/second-factor/second-factor.js'
