import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

/** Answers a request in place of a stand-in; gets what that would have said, and may take the response into its own hands. */
export type Lie = (answer: Answer, response: ServerResponse) => Answer | 'handled' | Promise<Answer | 'handled'>

export function json (status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body: JSON.stringify(body) }
}

export function html (status: number, body: string): Answer {
  return { status, headers: { 'content-type': 'text/html; charset=utf-8' }, body }
}

/** Accepts the request and never answers. */
export const hangs: Lie = () => 'handled'

/** Sends headers and the first byte, and then nothing. */
export const stalls: Lie = (_answer, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).write('{')
  return 'handled'
}

export const drops: Lie = (_answer, response) => {
  response.destroy()
  return 'handled'
}

/** Sends bytes as fast as they are taken, without an end. */
export const neverEnds: Lie = (_answer, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  const chunk = Buffer.alloc(65_536, ' ')
  const pump = () => { while (!response.destroyed && response.write(chunk)); }
  response.on('drain', pump)
  pump()
  return 'handled'
}

/** Sends one byte at a time, each in time. */
export const drips: Lie = ({ body }, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  let sent = 0
  const timer = setInterval(() => { response.write(body.charAt(sent++) || ' ') }, 50)
  response.on('close', () => { clearInterval(timer) })
  return 'handled'
}

/** Says how long the answer is, and hangs up in the middle of it. */
export const breaksOff: Lie = ({ body, headers }, response) => {
  const half = Buffer.from(body).subarray(0, body.length / 2)
  response.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) }).write(half, () => { response.destroy() })
  return 'handled'
}

/** What can go wrong with any answer of any provider, and the code that a sign-in ends with. */
export const FAILURES: Readonly<Record<string, readonly [code: 'provider_error' | 'provider_unavailable', lie: Lie]>> = {
  'an HTML page with 200': ['provider_error', () => html(200, '<h1>Sorry</h1>')],
  'an empty object': ['provider_error', () => json(200, {})],
  'an error with 200': ['provider_error', () => json(200, { error: 'bad_verification_code' })],
  'a redirect': ['provider_error', () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' })],
  'no content': ['provider_error', () => ({ status: 204, headers: {}, body: '' })],
  'an answer without an end': ['provider_error', neverEnds],
  'half of the right answer': ['provider_error', answer => ({ ...answer, body: answer.body.slice(0, answer.body.length / 2) })],
  'a list in place of an object, or an object in place of a list': [
    'provider_error',
    answer => ({ ...answer, body: answer.body.startsWith('[') ? '{}' : '[]' })
  ],
  'status 400': ['provider_error', () => json(400, { error: 'invalid_request', error_description: 'bad\u2028day' })],
  'status 401 with a challenge': ['provider_error', () => ({ status: 401, headers: { 'www-authenticate': 'Basic realm="x"' }, body: '{}' })],
  'status 429': ['provider_unavailable', () => json(429, {})],
  'status 500': ['provider_unavailable', () => html(500, 'Oops')],
  'status 503 with JSON': ['provider_unavailable', () => json(503, { error: 'temporarily_unavailable' })],
  silence: ['provider_unavailable', hangs],
  'a body that stalls': ['provider_unavailable', stalls],
  'one byte after another': ['provider_unavailable', drips],
  'an answer that breaks off': ['provider_unavailable', breaksOff],
  'a dropped connection': ['provider_unavailable', drops],
  'no HTTP': ['provider_unavailable', (_answer, response) => { response.socket?.end('220 ready\r\n'); return 'handled' }]
}

const MEGABYTE = Buffer.alloc(1024 * 1024, ' ')

/** The right answer with more behind it than anybody should read; apart from the others since that takes the machine a while. */
export const FLOODS: typeof FAILURES = {
  'the right answer with 20 MB behind it': ['provider_error', ({ status, headers, body }, response) => {
    response.writeHead(status, headers).end(Buffer.concat([Buffer.from(body), ...repeated(MEGABYTE)]))
    return 'handled'
  }],
  // Pieces of gzip in a row are one (RFC 1952 section 2.2).
  'a small answer that swells to 20 MB': ['provider_error', ({ status, headers, body }, response) => {
    response.writeHead(status, { ...headers, 'content-encoding': 'gzip' }).end(Buffer.concat([gzipSync(body), ...repeated(gzipSync(MEGABYTE))]))
    return 'handled'
  }]
}

function repeated (piece: Buffer): Buffer[] {
  return Array.from({ length: 20 }, () => piece)
}
