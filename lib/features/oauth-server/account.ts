/** The clients that users have connected: on their account page, and for the application. */
import { current } from '../../core/current-user.js'
import type { AuthContext } from '../../core/context.js'
import { form } from '../../core/form.js'
import { type Content, action, dateIn, filled, html, sentence } from '../../core/pages/elements.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { AuthError } from '../../errors.js'
import type { User } from '../../accounts/account.js'
import type { FeatureTables } from '../../session/sql-database.js'
import { checkedUserId } from '../app-auth/users.js'
import { hasServer, serverOf } from './authorize.js'
import { clientName, wordsIn } from './consent-page.js'
import { endGrant } from './consent.js'
import type { Grant } from './grant.js'
import { Grants } from './grants.js'

/** A client that a user has allowed to act for them. */
export interface ConnectedClient {
  /** Names the grant in `endGrant`. */
  id: string
  /** The id of the client. */
  clientId: string
  /** The name of the client; null for one without. */
  name: string | null
  /** The URL of the resource. */
  resource: string
  /** What the user has allowed. */
  scopes: readonly string[]
  /** When the user allowed it. */
  createdAt: Date
  /** The last use, to an hour. */
  lastUsedAt: Date
}

export async function connectedClients (auth: AuthContext, userId: string): Promise<ConnectedClient[]> {
  return (await grantsOf(auth, checkedUserId(userId))).map(shown)
}

function shown ({ grantId: id, clientId, content: { clientName: name, resource, scopes }, createdAt, usedAt }: Grant) {
  return { id, clientId, name, resource, scopes, createdAt: new Date(createdAt), lastUsedAt: new Date(usedAt) }
}

async function grantsOf (auth: AuthContext, userId: string): Promise<Grant[]> {
  if (!hasServer(auth)) throw new AuthError('unsupported', { message: 'The option oauthServer is not given.' })
  const status = await auth.accounts.status(userId)
  if (status === null) throw new AuthError('unknown_user')
  return connectedOf(serverOf(auth).grants, { userId, ...status })
}

/** The grants of a user whose clients have their tokens. */
async function connectedOf (
  grants: Grants, { userId, generation }: Pick<User, 'userId' | 'generation'>
): Promise<Grant[]> {
  const all = await grants.ofUser(userId, generation, Date.now())
  return all.filter(({ content }) => content.tokens.length > 0)
}

/** Lists the clients of a user for the command line. */
export async function clientsOf (tables: FeatureTables, user: User): Promise<ConnectedClient[]> {
  return (await connectedOf(new Grants(tables), user)).map(shown)
}

export async function endGrantOf (
  auth: AuthContext, userId: string, id: string, source: Parameters<typeof endGrant>[2]
): Promise<boolean> {
  const grant = (await grantsOf(auth, userId)).find(({ grantId }) => grantId === id)
  return grant !== undefined && endGrant(serverOf(auth), grant, source)
}

export const endOwnGrant = form({
  path: '/local/grants/end',
  when: hasServer,
  operationId: 'authLocalEndGrant',
  summary: 'Disconnect a client from the account of the signed-in user',
  description: 'All of its tokens end at once.',
  user: 'signed-in',
  fields: { id: { type: 'string', pattern: '^[A-Za-z0-9_-]{24}$', description: 'From the list of `app.auth.grants`' } },
  required: ['id'],
  refuses: ['not_found']
}, async (auth, { request, fields: { id } }) => {
  const { user } = await current(auth, request)
  const isEnded = await endGrantOf(auth, user.userId, id, request)
  if (!isEnded) throw new AuthError('not_found', { message: 'The user has no connected client with this id.' })
})

export const grantsSection: Section = { name: 'applications', order: 75, show: grantsRow }

/** One row a client: a consent in each of its windows has made a grant of its own. */
async function grantsRow ({ auth, user, texts, rowOf, targets }: AccountView): Promise<Content> {
  if (!hasServer(auth)) return null
  const { language, oauth } = texts
  const grants = await connectedOf(serverOf(auth).grants, user)
  const items = grants.map(grant => {
    const { grantId, clientId, content: { clientName: name, resource, scopes }, createdAt, usedAt } = grant
    const client = clientName({ id: clientId, name })
    const known = serverOf(auth).resources.get(resource)?.scopes
    const words = scopes.map(scope => wordsIn(known?.get(scope) ?? scope, language)).join(' · ')
    const dates = { date: dateIn(language, new Date(createdAt)), used: dateIn(language, new Date(usedAt)) }
    return html`<li><span>${sentence('{client}', { client })} <small>${words}</small><small>${
      filled(oauth.since, dates)}</small></span>${action(
      auth.formPaths.get('local/grants/end'), { ...targets({ open: true }), id: grantId }, oauth.end,
      { label: filled(oauth.endLabel, { client }) })}</li>`
  })
  return rowOf({
    title: oauth.connected,
    state: items.length === 0 ? oauth.none : String(items.length),
    content: items.length > 0 && html`<ul>${items}</ul>`
  })
}
