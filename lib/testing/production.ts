import { OptionsError } from '../errors.js'

/**
 * Refuses to go on in production.
 *
 * @throws OptionsError with `NODE_ENV=production`
 */
export function refuseProduction (): void {
  if (process.env.NODE_ENV !== 'production') return
  throw new OptionsError('fastify-svc-auth/testing signs users in without a password or a provider, ' +
    'so it is refused with NODE_ENV=production; import it in tests only')
}
