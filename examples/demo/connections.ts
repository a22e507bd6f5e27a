import type { FastifyInstance } from 'fastify'
import { AuthError } from 'fastify-svc-auth'
import type { Connection } from 'fastify-svc-auth/connections'
import { html } from './html.js'
import { administratorsOnly } from './roles.js'
import { redirectDone, sendPage, takeForms } from './site.js'

interface NewConnection {
  name: string
  issuer: string
  clientId: string
  clientSecret: string
  domain: string
}

interface OneConnection {
  Params: { id: string }
}

const text = { type: 'string', minLength: 1, maxLength: 1000 }
const connection = {
  type: 'object',
  required: ['name', 'issuer', 'clientId', 'clientSecret', 'domain'],
  properties: { name: text, issuer: text, clientId: text, clientSecret: text, domain: text }
}
const domain = { type: 'object', required: ['domain'], properties: { domain: text } }

/** The identity providers of customers; yours lets each customer see and change their own alone. */
export async function mountConnections (scope: FastifyInstance): Promise<void> {
  const { connections } = scope.auth
  await takeForms(scope)
  for (const guard of administratorsOnly(scope)) scope.addHook('preHandler', guard)

  scope.get('/admin/connections', async (_request, reply) => {
    const { connections: all } = await connections.list()
    const field = (name: string, label: string, type = 'text') => html`
      <label for="${name}">${label}</label>
      <input id="${name}" name="${name}" type="${type}" required maxlength="1000" autocomplete="off">`
    return sendPage(reply, 'Connections', html`
    <p>A customer signs in with their own OpenID Connect provider, which this machine reaches on the internet.</p>
    ${all.map(section)}
    ${all.length === 0 && html`<p>There are none yet.</p>`}
    <section>
      <h2>Add a connection</h2>
      <form method="post" action="/admin/connections">
        ${field('name', 'Name of the customer')}${field('issuer', 'Issuer', 'url')}${field('clientId', 'Client id')}
        ${field('clientSecret', 'Client secret', 'password')}${field('domain', 'Domain of their addresses')}
        <button>Add it</button>
      </form>
    </section>
    <p><a href="/admin">All users</a></p>`)
  })

  scope.post<{ Body: NewConnection }>('/admin/connections', { schema: { body: connection } }, async (request, reply) => {
    const { domain, ...others } = request.body
    await connections.create({ ...others, domains: [domain] }, { request })
    return redirectDone(reply, '/admin/connections', 'connected')
  })

  scope.get<OneConnection>('/admin/connections/:id/test', async ({ params: { id } }, reply) =>
    reply.redirect(await connections.test(id)))

  scope.post<OneConnection & { Body: { domain: string } }>('/admin/connections/:id/prove', {
    schema: { body: domain }
  }, async (request, reply) => {
    const { problem } = await connections.proveDomain(request.params.id, request.body.domain, { request })
    return redirectDone(reply, '/admin/connections', problem === null ? 'proven' : 'unproven')
  })

  scope.post<OneConnection>('/admin/connections/:id/remove', async (request, reply) => {
    if (!await connections.remove(request.params.id, { request })) throw new AuthError('not_found')
    return redirectDone(reply, '/admin/connections', 'disconnected')
  })
}

function section ({ id, name, issuer, redirectUri, backChannelLogoutUri, domains }: Connection) {
  const path = `/admin/connections/${id}`
  return html`
    <section>
      <h2>${name}</h2>
      <p>${issuer}. Its administrator registers <code>${redirectUri}</code>, and
        <code>${backChannelLogoutUri}</code> for back-channel logout.</p>
      <ul>${domains.map(({ domain, state, record }) => html`
        <li>
          <span>${domain} <small>${state}</small><br>
            <code>${record.name} ${record.type} "${record.value}"</code></span>
          <form method="post" action="${path}/prove"><input type="hidden" name="domain" value="${domain}">
            <button class="quiet" aria-label="Check the record of ${domain}">Check the record</button></form>
        </li>`)}</ul>
      <form method="post" action="${path}/remove">
        <a class="button quiet" href="${path}/test" aria-label="Test ${name}">Test</a>
        <button class="danger" aria-label="Remove ${name}">Remove</button>
      </form>
    </section>`
}
