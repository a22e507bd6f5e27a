/**
 * A command line that signs in with a code that is typed in a browser (RFC 8628), and lists the user's notes:
 *
 *     npx tsx cli.ts http://localhost:3000
 */
import { setTimeout as wait } from 'node:timers/promises'

const [, , url = 'http://localhost:3000'] = process.argv
const resource = `${url}/mcp`
const metadata = await read(await fetch(new URL('/.well-known/oauth-authorization-server', url)))

const device = await ask(metadata.device_authorization_endpoint, { scope: 'notes:read', resource })
console.log(`Open ${device.verification_uri} and enter ${device.user_code}`)

const { access_token: token } = await poll(Number(device.interval))
const { result } = await read(await fetch(resource, {
  method: 'POST',
  headers: { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_notes', arguments: {} } })
}))
for (const { text } of Object(result).content) console.log(text)

async function poll (seconds: number): Promise<Record<string, unknown>> {
  await wait(seconds * 1000)
  const answer = await ask(metadata.token_endpoint, {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: String(device.device_code)
  })
  if (answer.error === 'authorization_pending') return poll(seconds)
  if (answer.error === 'slow_down') return poll(seconds + 5)
  if (answer.error !== undefined) throw new Error(String(answer.error_description))
  return answer
}

async function ask (endpoint: unknown, fields: Record<string, string>): Promise<Record<string, unknown>> {
  return read(await fetch(String(endpoint), { method: 'POST', body: new URLSearchParams({ client_id: 'notes-cli', ...fields }) }))
}

async function read (response: Response): Promise<Record<string, unknown>> {
  return Object(await response.json())
}
