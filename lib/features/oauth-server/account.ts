/** The clients that users have connected: on their account page, and for the application. */
import { current } from '../../core/current-user.js'
import type { AuthContext } from '../../core/context.js'
import { form } from '../../core/form.js'
import { type Content, action, dateIn, filled, html, item, verbatim } from '../../core/pages/elements.js'
import type { AccountView, Section } from '../../core/pages/page.js'
import { wordsIn } from '../../core/scopes.js'
import { AuthError } from '../../errors.js'
import type { User } from '../../accounts/account.js'
import type { FeatureTables } from '../../session/feature-tables.js'
import { checkedUserId } from '../app-auth/users.js'
import { hasServer, serverOf } from './authorize.js'
import { clientName } from './consent-page.js'
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

type WithGrants = Pick<AuthContext, 'accounts' | 'parts'>

export async function connectedClients (auth: WithGrants, userId: string): Promise<ConnectedClient[]> {
  return (await grantsOf(auth, checkedUserId(userId))).map(shown)
}

function shown ({ grantId: id, clientId, content: { clientName: name, resource, scopes }, createdAt, usedAt }: Grant) {
  return { id, clientId, name, resource, scopes, createdAt: new Date(createdAt), lastUsedAt: new Date(usedAt) }
}

async function grantsOf (auth: WithGrants, userId: string): Promise<Grant[]> {
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
  auth: WithGrants, userId: string, id: string, source: Parameters<typeof endGrant>[2]
): Promise<boolean> {
  const grant = (await grantsOf(auth, userId)).find(({ grantId }) => grantId === id)
  return grant !== undefined && endGrant(serverOf(auth), grant, source)
}

export const endOwnGrant = form({
  path: '/local/grants/end',
  when: hasServer,
  operationId: 'authLocalEndGrant',
  summary: 'Disconnect a client from the account of the signed-in user',
  description: 'Its tokens end at once: those of one grant, or of all grants of the client.',
  user: 'signed-in',
  fields: {
    id: { type: 'string', pattern: '^[A-Za-z0-9_-]{24}$', description: 'A grant, from `app.auth.grants`' },
    client: { type: 'string', maxLength: 2048, description: 'The id of a client' }
  },
  refuses: ['not_found']
}, async (auth, { request, fields: { id, client } }) => {
  const { user } = await current(auth, request)
  const grants = await grantsOf(auth, user.userId)
  const due = grants.filter(({ grantId, clientId }) => id === undefined ? clientId === client : grantId === id)
  const ended = await Promise.all(due.map(async grant => endGrant(serverOf(auth), grant, request)))
  if (!ended.includes(true)) throw new AuthError('not_found', { message: 'The user has no such client.' })
})

export const grantsSection: Section = { name: 'applications', order: 75, show: grantsRow }

/** One item a client: each of its windows may have a grant of its own. */
async function grantsRow ({ auth, user, texts, rowOf, targets }: AccountView): Promise<Content> {
  if (!hasServer(auth)) return null
  const { language, oauth } = texts
  const { grants, resources } = serverOf(auth)
  const connected = await connectedOf(grants, user)
  // The last used one comes first, and says how the client calls itself.
  const names = connected.map(({ clientId, content: { clientName } }) => [clientId, clientName] as const)
  const clients = new Map([...names].reverse())
  const items = [...clients].reverse().map(([id, name]) => {
    const client = clientName({ id, name })
    const own = connected.filter(({ clientId }) => clientId === id)
    const words = own.flatMap(({ content: { resource, scopes } }) => scopes.map(scope =>
      wordsIn(resources.get(resource)?.scopes.get(scope) ?? scope, language)))
    const dates = {
      date: dateIn(language, new Date(Math.min(...own.map(({ createdAt }) => createdAt)))),
      used: dateIn(language, new Date(Math.max(...own.map(({ usedAt }) => usedAt))))
    }
    const facts = html`<small>${[...new Set(words)].join(' · ')}</small><small>${filled(oauth.since, dates)}</small>`
    return item(
      html`${verbatim(client)} ${facts}`,
      action(auth.formPaths.get('local/grants/end'), { ...targets({ open: true }), client: id }, oauth.end, {
        label: filled(oauth.endLabel, { client }), look: 'small'
      })
    )
  })
  return rowOf({
    title: oauth.connected,
    state: items.length === 0 ? oauth.none : String(items.length),
    content: items.length > 0 && html`<ul>${items}</ul>`
  })
}
