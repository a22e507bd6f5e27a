/** Adds names of headers to the header `Vary`, each once (RFC 9110 section 12.5.5). */
export function mergedVary (vary: unknown, headers: string): string {
  if (vary === undefined) return headers
  const names = [vary, headers].join(',').matchAll(/[^\s,]+/g)
  const named = new Map(Array.from(names, ([name]) => [name.toLowerCase(), name]))
  return named.has('*') ? '*' : [...named.values()].join(', ')
}
