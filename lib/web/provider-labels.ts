import type { AuthContext } from '../context.js'

/** Names that the first letter in upper case does not make. */
const LABELS: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'], ['gitlab', 'GitLab'], ['linkedin', 'LinkedIn']
])

/** Returns how users call a provider, which this process need not have. */
export function providerLabel ({ providers }: Pick<AuthContext, 'providers'>, name: string): string {
  const words = name.split('-').map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return providers.find(provider => provider.name === name)?.label ?? LABELS.get(name) ?? words.join(' ')
}
