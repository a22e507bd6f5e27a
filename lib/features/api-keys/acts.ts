/** What users do with their own keys. It is loaded only with the option `apiKeys`. */
import type { Act } from '../../core/act.js'
import { type AuthContext, needed } from '../../core/context.js'
import { current } from '../../core/current-user.js'
import { form } from '../../core/form.js'
import { button, html } from '../../core/pages/elements.js'
import { filledIn, objectOf } from '../../core/schema.js'
import { DAY_MS } from '../../base/values.js'
import { assertFollowsConnection } from '../../core/required-connection.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { assertFactorRecent, assertUserRecent } from '../recent.js'
import { createKey, endKey, listKeys, makerOf } from './made-keys.js'

const isSelfService = ({ parts }: AuthContext): boolean => parts.apiKeys?.selfService === true

const scope = { type: 'string', maxLength: 256 } as const

const createOwnKey = form({
  path: '/local/keys',
  when: isSelfService,
  operationId: 'authLocalCreateKey',
  summary: 'Make an API key of the signed-in user',
  description: 'The last authentication must be less than ten minutes old, by a factor of the user if they have one.',
  user: 'signed-in',
  fields: {
    name: { type: 'string', maxLength: 1000, description: 'At most 64 characters' },
    scopes: {
      anyOf: [{ type: 'array', maxItems: 100, items: scope }, { type: 'string', maxLength: 4096 }],
      description: 'A list, or a text with blanks'
    },
    expiresInDays: {
      anyOf: [{ type: 'integer', minimum: 1, maximum: 36500 }, { type: 'string', pattern: '^([1-9][0-9]{0,4})?$' }],
      description: 'Default never, or as late as the application allows'
    }
  },
  required: ['name', 'scopes'],
  answers: { 201: objectOf('The key: no other answer has it', { id: { type: 'string' }, key: { type: 'string' } }) },
  refuses: ['reauthenticate', 'blocked', 'sso_required', 'too_many'],
  limits: ['reauthenticate']
}, async (auth, { request, reply, fields: { name, scopes, expiresInDays, next } }) => {
  const part = needed(auth.parts.apiKeys, 'apiKeys')
  const maker = await makerOf(auth, request)
  await assertUserRecent(auth, maker)
  assertFactorRecent(auth, maker)
  await assertFollowsConnection(auth, maker.user)
  if (name.trim() === '') throw invalidRequest('The key needs a name.')
  const days = typeof expiresInDays === 'string' ? filledIn(expiresInDays) : expiresInDays
  const made = await createKey(part, {
    userId: maker.user.userId,
    name,
    scopes: typeof scopes === 'string' ? scopes.split(' ').filter(scope => scope !== '') : scopes,
    expiresAt: days === undefined ? undefined : new Date(Date.now() + Number(days) * DAY_MS)
  }, { source: request, maker, tell: user => auth.mailer?.sendOfApplication('key-created', user, request.log) })
  return {
    status: 201,
    body: made,
    show () {
      const layout = needed(auth.layout, 'pages')
      const { common, keys } = layout.textsFor(request)
      return layout.send(reply, {
        title: keys.made,
        content: [
          html`<p>${keys.madeText}</p>`,
          html`<ul class="codes"><li><code dir="ltr" translate="no">${made.key}</code></li></ul>`,
          button(auth.redirects.afterSuccess(request, next), common.continue, 'primary')
        ]
      })
    }
  }
})

const endOwnKey = form({
  path: '/local/keys/end',
  when: isSelfService,
  operationId: 'authLocalEndKey',
  summary: 'End an API key of the signed-in user',
  user: 'signed-in',
  fields: { id: { type: 'string', maxLength: 64, description: 'Of `app.auth.keys`' } },
  required: ['id'],
  refuses: ['not_found']
}, async (auth, { request, fields: { id } }) => {
  const part = needed(auth.parts.apiKeys, 'apiKeys')
  const { user: { userId } } = await current(auth, request)
  const isOwn = (await listKeys(part, { userId })).some(key => key.id === id)
  if (!isOwn || !await endKey(part, id, request)) {
    throw new AuthError('not_found', { message: 'The user has no such key.' })
  }
})

export const KEY_ACTS: readonly Act[] = [createOwnKey, endOwnKey]
