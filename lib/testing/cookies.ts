import type { LightMyRequestResponse } from 'fastify'

/** The header that a browser sends after a response: the cookies before, with its changes. */
export function cookiesAfter ({ headers }: LightMyRequestResponse, before = ''): string {
  const cookies = new Map(before.split('; ').filter(pair => pair !== '').map(splitPair))
  for (const line of [headers['set-cookie'] ?? []].flat().map(String)) {
    const [pair = '', ...attributes] = line.split(/; */)
    const [name, value] = splitPair(pair)
    if (attributes.some(attribute => /^max-age=0$|^expires=thu, 01 jan 1970/i.test(attribute))) cookies.delete(name)
    else cookies.set(name, value)
  }
  return Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ')
}

function splitPair (pair: string): [name: string, value: string] {
  const [name = '', ...value] = pair.split('=')
  return [name, value.join('=')]
}
