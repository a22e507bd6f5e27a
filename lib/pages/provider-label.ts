/** Names that the first letter in upper case does not make. */
const LABELS: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'], ['gitlab', 'GitLab'], ['linkedin', 'LinkedIn']
])

/** Returns how users call a provider. */
export function providerLabel (name: string): string {
  return LABELS.get(name) ?? name.split('-').map(word => word.charAt(0).toUpperCase() + word.slice(1)).join(' ')
}
