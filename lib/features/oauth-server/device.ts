/** The device grant (RFC 8628): a client without a browser, which shows a code. */
import { randomBytes, randomInt } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { digestOf } from '../../base/values.js'
import { type Act, pathOf, urlOf } from '../../core/act.js'
import { type AuthContext, needed } from '../../core/context.js'
import { current, currentUser } from '../../core/current-user.js'
import { form } from '../../core/form.js'
import {
  type Content, alert, field, html, htmlForm, link, notice, sentence, timeIn
} from '../../core/pages/elements.js'
import type { View } from '../../core/pages/layout.js'
import { page, redirected } from '../../core/pages/page.js'
import { wantsJson } from '../../core/site.js'
import { AuthError } from '../../errors.js'
import type { EntryContent } from '../../schema/sessions.js'
import { principalOf } from '../../session/record.js'
import { PENDING_MS } from '../../session/store.js'
import { nameOf, pathOfPage, signInPath } from '../pages/parts.js'
import { dueStep, goOn, hasServer, serverOf } from './authorize.js'
import { clientName, scopeList } from './consent-page.js'
import { giveGrant } from './consent.js'
import { resourceFor, scopesOf } from './request.js'
import { type Endpoint, type Exchange, OAuthError, clientOf, fieldsOf, giveTokens } from './token.js'
import type { Resource, Server } from './oauth-server.js'

/** Consonants, of which no words are made and none passes for another (RFC 8628 section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8

/** How often a client may ask, in seconds. */
const INTERVAL_S = 5

/** The kinds of what is kept of a device: what it asked for, its last question, and the answer. */
const ASKED = 'oauth-device'
const POLLED = 'oauth-device-poll'
const ANSWERED = 'oauth-device-answer'

interface AskedByDevice extends EntryContent {
  readonly clientId: string
  readonly resource: string
  readonly scopes: readonly string[]
  readonly address: string
  readonly userAgent: string | null
  readonly startedAt: number
}

/** What is kept is known by the hash of the code that is typed, and by that of the device's. */
const keyOf = (kind: string, code: string) => ({ hash: digestOf(`${kind} ${code}`), kind, owner: digestOf(code) })

/** Returns a code, of letters of any width, without what typing adds; null for none. */
function userCodeIn (text: unknown): string | null {
  const code = String(text).normalize('NFKC').toUpperCase().replace(/[^A-Z]/g, '')
  return code.length === LENGTH ? code : null
}

export function deviceAuthorization (auth: AuthContext, server: Server): Endpoint {
  return async request => {
    const fields = fieldsOf(request)
    const clientId = await clientOf(server, request, fields)
    if (!server.deviceClients.has(clientId)) {
      throw new OAuthError('unauthorized_client', 'The option device does not name this client.')
    }
    const resource = resourceFor(server, fields.resource)
    if (resource === null) throw new OAuthError('invalid_target', 'resource is not one of this server.')
    const userCode = Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('')
    // The device's code is found by the code that is typed, and cannot be made from it.
    const deviceCode = `${userCode}.${randomBytes(32).toString('base64url')}`
    const startedAt = Date.now()
    const content: AskedByDevice = {
      clientId,
      resource: resource.url,
      scopes: scopesOf(resource, fields.scope),
      address: request.ip,
      userAgent: request.headers['user-agent']?.slice(0, 256) ?? null,
      startedAt,
      device: digestOf(deviceCode)
    }
    await auth.records.put({ ...keyOf(ASKED, userCode), content, startedAt }, 1)
    return {
      device_code: deviceCode,
      user_code: `${userCode.slice(0, LENGTH / 2)}-${userCode.slice(LENGTH / 2)}`,
      verification_uri: urlOf(auth, 'device'),
      expires_in: PENDING_MS / 1000,
      interval: INTERVAL_S
    }
  }
}

/** What a device asks again and again (RFC 8628 section 3.4). */
export const redeemDevice: Exchange = async (auth, server, _request, fields) => {
  const { records } = auth
  const { device_code: code = '', client_id: clientId } = fields
  const expired = new OAuthError('expired_token', 'The code has expired; ask for another one.')
  const userCode = code.slice(0, LENGTH)
  const asked = await askedBy(auth, userCode)
  if (asked === null || asked.device !== digestOf(code) || asked.clientId !== clientId) throw expired
  const now = Date.now()
  const poll = keyOf(POLLED, code)
  const last = await records.find(poll)
  await records.put({ ...poll, content: { at: now }, startedAt: now }, 1)
  if (last !== null && Number(last.at) > now - INTERVAL_S * 1000) throw new OAuthError('slow_down', 'Ask less often.')
  const answer = await records.find(keyOf(ANSWERED, String(asked.device)))
  if (answer === null) throw new OAuthError('authorization_pending', 'The user has not decided yet.')
  // The first answer is the last one: what other users decide later gives nothing.
  const { hash, kind, owner } = keyOf(ASKED, userCode)
  if (await records.take(hash, kind, [owner]) === null) throw expired
  if (answer.grantId === null) throw new OAuthError('access_denied', 'The user has refused.')
  return giveTokens(auth, server, String(answer.grantId), fields)
}

async function askedBy (
  { records }: Pick<AuthContext, 'records'>, code: string | null
): Promise<AskedByDevice | null> {
  const asked = code === null ? null : await records.find(keyOf(ASKED, code)) as AskedByDevice | null
  return asked !== null && asked.startedAt > Date.now() - PENDING_MS ? asked : null
}

/** The page on which the code is typed; the form shows what the device asks for. */
const devicePage = page({ path: '/device', when: hasDevices }, async (auth, view) => {
  const { request, reply, texts: { oauth, common } } = view
  const present = await currentUser(auth, request)
  const path = pathOf(auth, 'device')
  if (present === null) return redirected(reply, signInPath(auth, request, path))
  return {
    title: oauth.deviceTitle,
    content: [
      html`<p>${oauth.deviceText}</p>`,
      htmlForm({
        action: auth.formPaths.get('device'),
        hidden: { error_next: path },
        fields: field({
          name: 'user_code',
          label: oauth.deviceCode,
          type: 'text',
          autocomplete: 'off',
          attributes: html` dir="ltr" autocapitalize="characters" spellcheck="false"`
        }),
        submit: common.continue
      })
    ]
  }
})

function hasDevices (auth: Pick<AuthContext, 'parts'>): boolean {
  return hasServer(auth) && serverOf(auth).deviceClients.size > 0
}

const decide = form({
  path: '/device',
  when: hasDevices,
  summary: 'Connect a device by its code',
  description: 'Without a decision, browsers get the page that asks for it.',
  user: 'signed-in',
  fields: {
    user_code: { type: 'string', maxLength: 64 },
    decision: { type: 'string', enum: ['allow', 'deny'] }
  },
  required: ['user_code'],
  refuses: ['invalid_code', 'unauthenticated', 'reauthenticate', 'sso_required', 'rate_limited', 'unavailable'],
  limits: ['code', 'reauthenticate']
}, async (auth, { request, reply, fields: { user_code: text, decision } }) => {
  const server = serverOf(auth)
  const present = await current(auth, request)
  const code = userCodeIn(text)
  const asked = await askedBy(auth, code)
  const resource = asked && server.resources.get(asked.resource)
  if (asked === null || code === null || resource == null) throw new AuthError('invalid_code')
  const client = server.clients.get(asked.clientId) ?? { id: asked.clientId, name: null }
  const step = dueStep(auth, { present, asked: { resource, prompt: new Set() }, since: asked.startedAt })
  if (step !== null) {
    if (wantsJson(request)) throw new AuthError(step === 'set-up' ? 'second_factor_missing' : 'reauthenticate')
    const target = await goOn(auth, request, step, pathOf(auth, 'device'))
    return { status: 200, show: () => reply.redirect(target, 303) }
  }
  if (decision === undefined) {
    const { clientId, scopes, address, userAgent } = asked
    const body = { clientId, resource: resource.url, scopes, address, userAgent }
    return { status: 200, body, show: () => question(auth, request, reply, { asked, code, client, resource }) }
  }
  const allowed = { client, resource, scopes: asked.scopes, redirectUri: null }
  const grant = decision === 'allow'
    ? await giveGrant(auth, server, request, present, allowed, String(asked.device))
    : null
  const startedAt = Date.now()
  await auth.records.put({
    ...keyOf(ANSWERED, String(asked.device)), content: { grantId: grant && grant.grantId }, startedAt
  }, 1)
  return { status: 204, show: () => answered(auth, request, reply, decision === 'allow') }
})

/** Shows what a device asks for. */
function question (
  auth: AuthContext, request: FastifyRequest, reply: View['reply'],
  { asked, code, client, resource }:
  { asked: AskedByDevice, code: string, client: Parameters<typeof clientName>[0], resource: Resource }
) {
  const layout = needed(auth.layout, 'pages')
  const texts = layout.textsFor(request)
  const { oauth, language } = texts
  const minutes = Math.ceil((Date.now() - asked.startedAt) / 60_000)
  const user = principalOf(request)
  const content: Content = [
    alert(oauth.deviceQuestion),
    html`<p>${sentence(oauth.text, {
      client: clientName(client), user: user === null ? '' : nameOf(user)
    })}</p>`,
    html`<p>${sentence(oauth.deviceAsked, {
      time: timeIn(language, minutes, 'minute'), address: asked.address, agent: asked.userAgent ?? '–'
    })}</p>`,
    scopeList(texts, resource, asked.scopes),
    htmlForm({
      action: auth.formPaths.get('device'),
      hidden: { user_code: code, error_next: pathOf(auth, 'device') },
      fields: [],
      submit: oauth.allow,
      choice: { name: 'decision', value: 'allow', other: 'deny', otherSubmit: oauth.deny }
    })
  ]
  return layout.send(reply, { title: oauth.deviceTitle, content })
}

function answered (auth: AuthContext, request: FastifyRequest, reply: View['reply'], isAllowed: boolean) {
  const layout = needed(auth.layout, 'pages')
  const { oauth, account } = layout.textsFor(request)
  const content = [
    notice(isAllowed ? oauth.deviceDone : oauth.deviceDenied),
    auth.hasPages && html`<p>${link(pathOfPage(auth, 'account'), account.title)}</p>`
  ]
  return layout.send(reply, { title: oauth.deviceTitle, content })
}

export const DEVICE_ACTS: readonly Act[] = [devicePage, decide]
