import type { Method } from '../../core/context.js'

export const byProvider: Method = {
  name: 'provider',
  option: 'providers',
  isOffered: ({ providers }) => providers.length > 0,
  isOf: ({ providers }, { links }) => links.some(link => providers.some(({ name }) => name === link.provider)),
  namesFor ({ providers }, { links }) {
    const proving = providers.filter(({ provesAuthTime }) => provesAuthTime === true)
    return links.flatMap(link => proving.some(({ name }) => name === link.provider) ? link.provider : [])
  },
  async ask (auth, { texts: { signIn } }, { hidden, names }) {
    const { providerButtons } = await import('../pages/parts.js')
    const own = auth.providers.map(({ name }) => name).filter(name => names.includes(name))
    return {
      content: providerButtons(auth, signIn.withProvider, own, { ...hidden, reauthenticate: 'true' }), isButton: true
    }
  }
}
