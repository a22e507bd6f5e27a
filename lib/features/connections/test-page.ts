import type { FastifyReply } from 'fastify'
import { recordFailure } from '../../core/act.js'
import type { AuthContext } from '../../core/context.js'
import { type Texts, filled, html, links } from '../../core/pages/elements.js'
import { layoutOf, providerLabel } from '../../core/pages/lead-to.js'
import { wantsJson } from '../../core/site.js'
import type { AuthError } from '../../errors.js'
import { ProviderFailure } from '../../providers/failures.js'
import type { Authentication, ExternalProvider } from '../../providers/provider.js'

/** What a test has found: its step, and what our rule for it is. */
type Finding = Exclude<keyof Texts['connectionTest'], 'title' | 'nobody'>

/**
 * Answers the test of a connection, which signs nobody in: says in a sentence what works, or which
 * step does not, and what it must be like. Never what an address has answered.
 */
export async function showTest (
  auth: AuthContext, reply: FastifyReply, { name }: Pick<ExternalProvider, 'name'>,
  { isStart, run }: { isStart: boolean, run: () => Promise<Pick<Authentication, 'identity'>> }
): Promise<FastifyReply> {
  const { request } = reply
  const finding = await run().then(
    ({ identity: { claims: { email }, emailVerified } }): Finding =>
      email === undefined ? 'withoutEmail' : emailVerified ? 'works' : 'unproven',
    (error: unknown) => {
      // The words of the provider are for the log.
      recordFailure(request, reply, error)
      return failedStep(error, isStart)
    })
  const hasPassed = ['works', 'unproven', 'withoutEmail'].includes(finding)
  const layout = layoutOf(auth)
  const { common, connectionTest } = layout.textsFor(request)
  reply.header('Cache-Control', 'no-store')
  if (wantsJson(request)) return reply.send({ passed: hasPassed, finding, message: connectionTest[finding] })
  return layout.send(reply.code(200), {
    title: filled(connectionTest.title, { name: providerLabel(auth, name) }),
    content: [
      html`<p>${connectionTest[finding]}</p>`, html`<p>${connectionTest.nobody}</p>`,
      links([auth.site.publicPath('/'), common.home])
    ]
  })
}

function failedStep (error: unknown, isStart: boolean): Finding {
  const { code, cause }: Partial<AuthError> = Object(error)
  const isAway = code === 'provider_unavailable'
  if (isStart) return isAway ? 'metadataAway' : 'metadata'
  if (isAway) return 'away'
  if (code === 'access_denied' || code === 'not_allowed') return 'refused'
  return cause instanceof ProviderFailure ? 'tokens' : 'claims'
}
