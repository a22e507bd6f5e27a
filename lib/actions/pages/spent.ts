import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthContext } from '../../context.js'
import { failureOf } from '../../pages/failure.js'
import { action, button, links } from '../../pages/form.js'
import { html } from '../../pages/html.js'
import { sentence } from '../../pages/texts.js'
import type { Principal } from '../../session/record.js'
import { pathOf } from '../../web/act.js'
import { recordFailure } from '../../web/answers.js'
import { layoutOf } from '../../web/lead-to.js'
import { hasIcons, nameOf, providerLinks } from './parts.js'

/**
 * Shows what to do behind a callback that signs nobody in: a signed-in user sees who they are, and
 * a visitor starts again. It is there without the option `pages` too.
 */
export async function showSpent (
  auth: AuthContext,
  { error, request, reply }: { error: unknown, request: FastifyRequest, reply: FastifyReply },
  { provider, principal, next }: { provider: string, principal: Principal | null, next: string | null }
): Promise<FastifyReply> {
  const layout = layoutOf(auth)
  const texts = layout.textsFor(request)
  const { common, signIn, confirm } = texts
  const refusal = recordFailure(request, reply, error, provider)
  const home = auth.site.publicPath('/')
  const left = { next: auth.pages.loginWith(request, next) }
  const content = principal === null
    ? [providerLinks(auth, signIn.withProvider, [provider], { next }), links([home, common.home])]
    : [
        html`<p>${sentence(signIn.signedInAs, { user: nameOf(principal) })}</p>`,
        button(next ?? home, common.continue, 'primary'),
        action(pathOf(auth, 'logout'), left, confirm.signOut, { look: 'quiet' })
      ]
  const failure = principal === null ? failureOf(texts, refusal) : null
  const page = { title: signIn.title, hasIcons: hasIcons(auth), content }
  return layout.send(reply.code(refusal.statusCode), page, { failure })
}
