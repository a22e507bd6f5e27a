/** The routes of passkeys. They are loaded only with the option `passkeys`. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type PasskeyRules, beginCeremony, registerPasskey, removePasskey, renamePasskey, signInByPasskey
} from '../flows/passkeys.js'
import { uuidToBase64url } from '../base/uuid.js'
import { PASSKEY_SCRIPT, PASSKEY_SCRIPT_VERSION } from '../pages/passkey-script.js'
import type { PagesContext } from './context.js'
import { ACCEPTED, mountForm, signedInAs } from './form-route.js'
import type { Limit } from './limits.js'
import {
  SECURITY, type SchemaTypes, accepted, isChecked, lost, lostPasskeysIn, mailCode, passkeyResponse, refusals, remember,
  signedIn, tags
} from './schema-parts.js'

const id = { type: 'string', maxLength: 2048, description: 'The id of the passkey' } as const
const name = { type: 'string', maxLength: 1000, description: 'At most 64 characters' } as const

const added = {
  type: 'object',
  description: 'The passkey',
  required: ['id', 'name'],
  properties: { id: { type: 'string' }, name: { type: 'string' } }
} as const

const left = {
  type: 'object',
  description: 'For PublicKeyCredential.signalAllAcceptedCredentials: the user, and the passkeys that are left',
  required: ['userId', 'accepted'],
  properties: {
    userId: { type: 'string', description: 'The user handle, as base64url' },
    accepted: { type: 'array', items: { type: 'string' } }
  }
} as const

/** Mounts the ceremonies of passkeys, and what a user does with those that they have. */
export function mountPasskeys (
  context: PagesContext & { readonly rules: PasskeyRules, readonly countResponse: Limit }
): void {
  const { scope, rules, limits, countResponse } = context

  mountForm(context, {
    path: '/local/passkeys/options',
    operationId: 'authLocalPasskeyOptions',
    summary: 'Begin a ceremony of passkeys',
    description: 'The challenge works once, in this session, for five minutes.',
    user: 'signed-in-or-not',
    fields: {
      for: { type: 'string', enum: ['register', 'login', 'factor'], description: 'What the passkey is for' }, lost
    },
    required: ['for'],
    answers: {
      200: { type: 'object', description: 'Options for `navigator.credentials`, as JSON', additionalProperties: true }
    },
    refuses: ['unauthenticated', 'reauthenticate', 'invalid_state', 'blocked'],
    limits: [limits.challenge]
  }, async ({ request, fields: { for: ceremony, lost }, outbox }) => ({
    status: 200, body: await beginCeremony(request, rules, { ceremony, isLost: isChecked(lost), outbox })
  }))

  mountForm(context, {
    path: '/local/passkeys/register',
    operationId: 'authLocalPasskeyRegister',
    summary: 'Add a passkey',
    description: 'The last authentication must be less than ten minutes old, by a factor of the user if they have ' +
      'one. A sign-in that waits for it is finished.',
    user: 'signed-in-or-not',
    fields: { response: passkeyResponse, name, lost, mailCode },
    required: ['response'],
    answers: { 201: added },
    refuses: [
      'invalid', 'invalid_code', 'invalid_state', 'unauthenticated', 'reauthenticate', 'exists', 'too_many', 'blocked'
    ],
    bodyLimit: countResponse,
    isSignInAttempt: true
  }, async ({ request, fields: { response, name, ...ofLost }, outbox }) => {
    const passkey = await registerPasskey(request, rules, { response, name, ...lostPasskeysIn(ofLost), outbox })
    return { status: 201, body: { id: passkey.id, name: passkey.name } }
  })

  mountForm(context, {
    path: '/local/passkeys/login',
    operationId: 'authLocalPasskeyLogin',
    summary: 'Sign in with a passkey',
    user: 'anyone',
    fields: { response: passkeyResponse, remember },
    required: ['response'],
    allowsExtraFields: true,
    answers: { 200: signedIn },
    refuses: ['invalid', 'invalid_state', 'unauthenticated', 'blocked'],
    bodyLimit: countResponse,
    isSignInAttempt: true
  }, async ({ request, fields: { response, remember }, outbox }) => {
    return signedInAs(await signInByPasskey(request, rules, { response, remember: isChecked(remember), outbox }))
  })

  mountForm(context, {
    path: '/local/passkeys/rename',
    operationId: 'authLocalPasskeyRename',
    summary: 'Rename a passkey of the signed-in user',
    description: 'The last authentication must be less than ten minutes old.',
    user: 'signed-in',
    fields: { id, name },
    required: ['id', 'name'],
    refuses: ['reauthenticate', 'not_found']
  }, async ({ request, fields }) => renamePasskey(request, rules, fields))

  mountForm(context, {
    path: '/local/passkeys/remove',
    operationId: 'authLocalPasskeyRemove',
    summary: 'Remove a passkey of the signed-in user',
    description: 'The last authentication must be less than ten minutes old, by a factor of the user. ' +
      'All other sessions of the user end. With `lost` alone: sends the code that stands in for lost passkeys.',
    user: 'signed-in',
    fields: { id, lost, mailCode },
    required: ['id'],
    answers: { 200: left, 202: accepted },
    refuses: ['reauthenticate', 'invalid_code', 'invalid_state', 'forbidden', 'not_found', 'last_link']
  }, async ({ request, fields: { id, ...ofLost }, outbox }) => {
    const removed = await removePasskey(request, rules, { id, ...lostPasskeysIn(ofLost), outbox })
    if (removed === null) return ACCEPTED
    const { userId, accepted } = removed
    return { status: 200, body: { userId: uuidToBase64url(userId), accepted } }
  })

  scope.withTypeProvider<SchemaTypes>().get('/local/passkeys/script.js', {
    schema: {
      tags,
      summary: 'The script of pages with passkeys',
      operationId: 'authLocalPasskeyScript',
      security: SECURITY.anyone,
      response: { 200: { type: 'string', description: 'JavaScript' }, ...refusals() }
    },
    exposeHeadRoute: false,
    onSend: allowCaching
  }, async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(PASSKEY_SCRIPT))
}

/** While processes of two versions run, a page of one may ask another one for its script. */
async function allowCaching (request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { v: version }: { v?: unknown } = Object(request.query)
  if (reply.statusCode === 200 && version === PASSKEY_SCRIPT_VERSION && !reply.hasHeader('Set-Cookie')) {
    reply.header('Cache-Control', 'public, max-age=31536000, immutable')
  }
}
