import type { AuthContext, Method } from '../../core/context.js'
import { CONNECTION } from '../connections/rows.js'

export const byProvider: Method = {
  name: 'provider',
  option: 'providers',
  isOffered: ({ providers, parts }) => providers.length > 0 || parts.connections !== null,
  isOf: ({ providers, parts }, { links }) => links.some(({ provider }) =>
    providers.some(({ name }) => name === provider) || isConnection(parts, provider)),
  namesFor ({ providers, parts }, { links }) {
    const proving = providers.filter(({ provesAuthTime }) => provesAuthTime === true)
    return links.map(({ provider }) => provider)
      .filter(provider => proving.some(({ name }) => name === provider) || isConnection(parts, provider))
  },
  async ask (auth, { texts: { signIn } }, { hidden, names }) {
    const { providerButtons } = await import('../pages/parts.js')
    const configured = auth.providers.map(({ name }) => name).filter(name => names.includes(name))
    const own = [...configured, ...names.filter(name => isConnection(auth.parts, name))]
    return {
      content: providerButtons(auth, signIn.withProvider, own, { ...hidden, reauthenticate: 'true' }), isButton: true
    }
  }
}

/** Whether a provider is a connection, and this process has the option for them. */
function isConnection ({ connections }: AuthContext['parts'], provider: string): boolean {
  return connections !== null && provider.startsWith(CONNECTION)
}
