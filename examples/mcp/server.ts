/**
 * Notes, for users in the browser and for their assistants by the Model Context Protocol. One process is the site, the
 * MCP server and the authorization server of its clients.
 *
 *     npm install fastify @fastify/formbody fastify-svc-auth better-sqlite3 @modelcontextprotocol/sdk zod
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npx tsx server.ts
 */
import formbody from '@fastify/formbody'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import Database from 'better-sqlite3'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { OAuthServer } from 'fastify-svc-auth/oauth-server'
import { Pages } from 'fastify-svc-auth/pages'
import { z } from 'zod'

const port = Number(process.env.PORT ?? 3000)
const baseUrl = process.env.BASE_URL ?? `http://localhost:${port}` // what clients type, without /mcp
const resource = `${baseUrl}/mcp`

const database = new Database(process.env.NOTES_DB ?? 'notes.db')
database.exec('create table if not exists notes (user_id text not null, text text not null)')
const insert = database.prepare<[string, string]>('insert into notes (user_id, text) values (?, ?)')
const select = database.prepare<[string], { text: string }>('select text from notes where user_id = ?')

const app = Fastify({ logger: true })
await app.register(formbody)
await app.register(authPlugin, {
  baseUrl,
  local: new LocalIdentityProvider(), // secret: LOCAL_IDP_SECRET
  store: new SqlAuthStore(), // the SQLite file ./local-auth.db, or LOCAL_AUTH_DB
  pages: new Pages({ name: 'Notes' }),
  oauthServer: new OAuthServer({
    resources: { [resource]: { scopes: { 'notes:read': 'Read your notes', 'notes:write': 'Add notes' } } },
    registration: true, // for assistants that have no document of their own
    clients: [{ client_id: 'notes-cli', client_name: 'Command line', redirect_uris: [] }],
    device: { clients: ['notes-cli'] } // cli.ts
  })
}) // session secret: SVC_SESSION_SECRET

/** What a client may do for a user, by the scopes that the user has allowed. */
function toolsFor (userId: string, scopes: readonly string[]): McpServer {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('list_notes', { description: 'List the notes of the user' }, async () => {
    return { content: select.all(userId).map(({ text }) => ({ type: 'text', text })) }
  })
  if (scopes.includes('notes:write')) {
    const inputSchema = { text: z.string().min(1).max(1000) }
    server.registerTool('add_note', { description: 'Add a note', inputSchema }, async ({ text }) => {
      insert.run(userId, text)
      return { content: [{ type: 'text', text: 'Added.' }] }
    })
  }
  return server
}

// Without a token it answers where clients find the authorization server.
const requireToken = app.auth.requireBearerFor({ audience: resource, scopes: ['notes:read'] })
app.post('/mcp', { preHandler: requireToken }, async (request, reply) => {
  const { token } = request
  const server = toolsFor(String(token?.sub), String(token?.scope).split(' '))
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true }) // each request has its own
  reply.hijack()
  reply.raw.on('close', () => { server.close().catch(error => { request.log.warn(error) }) })
  await server.connect(transport)
  await transport.handleRequest(request.raw, reply.raw, request.body)
})
// There are no sessions and no streams of events.
app.route({ method: ['GET', 'DELETE'], url: '/mcp', handler: async (_request, reply) => reply.code(405).send() })

const note = { schema: { body: { type: 'object', required: ['text'], properties: { text: { type: 'string', minLength: 1 } } } } }
app.post<{ Body: { text: string } }>('/notes', {
  ...note, preHandler: [app.auth.refuseCrossOrigin, app.auth.requireUser]
}, async (request, reply) => {
  insert.run(app.auth.user(request).userId, request.body.text)
  return reply.redirect('/', 303)
})

app.get('/', { preHandler: app.auth.requireUser }, async (request, reply) => {
  const items = select.all(app.auth.user(request).userId).map(({ text }) => `<li>${escaped(text)}</li>`)
  return reply.type('text/html').send(`<!doctype html><title>Notes</title><h1>Notes</h1><ul>${items.join('')}</ul>
<form method="post" action="/notes"><input name="text" aria-label="Note" required><button>Add</button></form>
<p>For your assistant: <code>${resource}</code> · <a href="/auth/pages/account">Connected applications</a></p>`)
})

function escaped (text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

await app.listen({ port, host: process.env.HOST ?? 'localhost' })
console.log(`Ready: ${baseUrl}`)
