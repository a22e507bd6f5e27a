/** The scenarios that `@modelcontextprotocol/conformance` has for authorization servers, unchanged. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { freePort } from '../helpers/loopback.js'
import { ADA, type Site, signedUp, startSite } from './site.js'

const SUITE = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')

interface Check {
  id: string
  status: string
}

/** What the suite is to find: it has no further scenarios for authorization servers. */
const PASSED = ['authorization-server-metadata', 'authorization-server-metadata-cimd', 'authorization-code-grant']

const site = await startSite(t)
const ada = await signedUp(site, ADA)

t.test('all scenarios for authorization servers pass', async t => {
  const port = String(await freePort())
  const clientId = await register(site, `http://127.0.0.1:${port}/callback`)
  const suite = spawn(process.execPath, [
    SUITE, 'authorization', '--url', site.url, '--client-id', clientId, '--resource', site.resource, '--port', port, '--verbose',
    '--output-dir', t.testdir()
  ])
  t.teardown(() => suite.kill('SIGKILL'))

  // It prints an address for the person who runs it, and waits for the browser.
  const request = await new Promise<string>(resolve => {
    let output = ''
    suite.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
      const [, request] = /^(http\S+\/authorize\?\S+)$[^]*Callback server started/m.exec(output) ?? []
      if (request !== undefined) resolve(request)
    })
    once(suite, 'close').then(() => { resolve('') }, () => { resolve('') })
  })
  const ended = Promise.all([once(suite, 'close'), text(suite.stdout), text(suite.stderr)])
  await ada.open(request)
  await ada.press('Allow', { decision: 'allow' })

  const [[code], ...output] = await ended
  t.equal(code, 0, output.join(''))
  const results = await checksIn(t.testdirName)
  t.strictSame(results.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id).sort(), PASSED.sort())
  t.strictSame(results.filter(({ status }) => status === 'FAILURE' || status === 'WARNING'), [])
})

async function register ({ url }: Site, redirectUri: string): Promise<string> {
  const response = await fetch(`${url}/auth/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirectUri], client_name: 'Conformance' })
  })
  return Object(await response.json()).client_id
}

async function checksIn (folder: string): Promise<Check[]> {
  const files = globSync('*/checks.json', { cwd: folder })
  return (await Promise.all(files.map(async file => JSON.parse(await readFile(join(folder, file), 'utf8'))))).flat()
}
