/** The MCP server of examples/mcp as clients see it: by HTTP, on a port of this machine. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { ExampleProcess } from '../examples/example-process.js'
import { Visitor } from '../examples/visitor.js'
import { freePort } from '../helpers/loopback.js'

export const ADA = { email: 'ada@example.com', password: 'a correct horse' }

export interface Site {
  url: string
  resource: string
}

/** Starts examples/mcp, until the end of the test. */
export async function startSite (t: Test): Promise<Site> {
  const port = String(await freePort())
  const url = `http://localhost:${port}`
  const server = new ExampleProcess(t, ['mcp/server.ts'], {
    PORT: port,
    SVC_SESSION_SECRET: 'a-secret-for-the-sessions-of-examples',
    LOCAL_IDP_SECRET: 'a-secret-for-the-tokens-of-examples',
    LOCAL_AUTH_DB: ':memory:',
    NOTES_DB: ':memory:'
  })
  await server.says('Ready: ')
  return { url, resource: `${url}/mcp` }
}

/** A browser in which a new user is signed in. */
export async function signedUp ({ url }: Site, credentials = ADA): Promise<Visitor> {
  const visitor = new Visitor()
  await visitor.open(url)
  await visitor.register(credentials)
  return visitor
}

/** Where a client waits for the answer of a browser: a server of its own, on a port of the system's choice. */
export class Loopback {
  readonly redirectUri: string
  readonly answers: URLSearchParams[] = []

  private constructor (redirectUri: string) {
    this.redirectUri = redirectUri
  }

  static async listen (t: Test, hostname = '127.0.0.1', path = '/callback'): Promise<Loopback> {
    const server = createServer((request, response) => {
      loopback.answers.push(new URL(String(request.url), loopback.redirectUri).searchParams)
      response.end('You can close this page.')
    }).listen(0, hostname)
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = Object(server.address())
    const loopback = new Loopback(`http://${hostname}:${port}${path}`)
    return loopback
  }

  /** Opens an authorization request in a browser, whose user allows it; resolves to what the client gets. */
  async allowedBy (visitor: Visitor, request: URL | string): Promise<URLSearchParams> {
    await visitor.open(String(request))
    await visitor.press('Allow', { decision: 'allow' })
    const answer = this.answers.pop()
    if (answer === undefined) throw new Error(`no answer reached ${this.redirectUri}; the browser is at ${visitor.page.url}`)
    return answer
  }
}
