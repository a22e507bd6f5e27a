import { type Act, pathOf, routeOfProvider } from '../../core/act.js'
import { needed } from '../../core/context.js'
import { form } from '../../core/form.js'
import { withQuery } from '../../core/redirects.js'
import { isChecked, remember } from '../../core/schema.js'
import { checkedEmail } from '../../email.js'
import { AuthError } from '../../errors.js'
import { email } from '../password/forms.js'
import { CONNECTION } from './rows.js'

/**
 * Leads a user who has typed their address to the connection of its domain, else to the other ways
 * to sign in. It says what a domain has, and nothing of an account.
 */
const startByAddress = form({
  path: '/connections/start',
  summary: 'Find the connection by which an address signs in',
  user: 'signed-in-or-not',
  fields: { email, remember },
  required: ['email'],
  answers: {
    200: {
      description: 'Where the sign-in begins, or null: the user signs in by another method',
      content: { 'application/json': { schema: { properties: { url: { type: ['string', 'null'] } } } } }
    }
  },
  refuses: ['invalid_email', 'not_allowed'],
  limits: ['start'],
  whileImpersonating: true
}, async (auth, { request, reply, fields }) => {
  const { rows } = needed(auth.parts.connections, 'connections')
  const address = checkedEmail(fields.email)
  const found = await rows.ofDomain(address.slice(address.indexOf('@') + 1))
  const next = auth.redirects.asked(request, fields.next)
  if (found === null) {
    const hasOthers = ['local/login', 'local/mail-login'].some(path => auth.formPaths.has(path))
    if (!hasOthers) throw new AuthError('not_allowed')
    const show = auth.pages.get('pages/sign-in')
    return { status: 200, body: { url: null }, ...(show && { show: () => show(request, reply, next) }) }
  }
  const provider = CONNECTION + found.connectionId
  const signed = auth.signedRequests.sign(provider, { loginHint: address })
  const url = withQuery(pathOf(auth, routeOfProvider(provider, 'login')), {
    next, signed, remember: isChecked(fields.remember) ? 'on' : null
  })
  auth.providerLabels.set(provider, found.content.name)
  return {
    status: 200,
    body: { url },
    show: async () => (await import('../../core/pages/lead-to.js')).leadToProvider(auth, reply, provider, url)
  }
})

export const CONNECTION_ACTS: readonly Act[] = [startByAddress]
