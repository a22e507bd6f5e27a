import type { AuthContext } from '../../core/context.js'
import type { Endpoint } from './token.js'
export function registrationEndpoint (_auth: AuthContext, _server: unknown, _options: { most: number }): Endpoint { return async () => ({}) }
