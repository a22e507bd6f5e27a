/** The routes that have pages. They are loaded with the options that need some. */
import type { ResolvedOptions } from '../options.js'
import { PageLayout } from '../pages/page-layout.js'
import type { PagesContext, RouteContext } from './context.js'
import { withQuery } from './page-route.js'

/** Mounts them; those that no option asks for are not loaded. */
export async function mountRoutesWithPages (context: RouteContext, options: ResolvedOptions): Promise<void> {
  const { local, mailPages, factors, site } = options
  const { mailer } = context
  const look = options.look ?? new PageLayout().redirectingTo(site.trustedOrigins)
  const passkeyPaths = factors?.passkeys == null ? null : await passkeyPathsOf(context)
  const ofPages: PagesContext = { ...context, look, passkeyPaths, ownSentences: local?.sentences ?? [] }
  if (local !== null && mailer !== null && mailPages !== null) {
    const { mountMailRoutes } = await import('./mails.js')
    mountMailRoutes({ ...ofPages, mailer, mailPages }, local)
  }
  if (factors !== null) {
    const { mountFactors } = await import('./factors.js')
    await mountFactors(ofPages, factors, local)
  }
  if (options.look === null) return
  const { mountOwnPages } = await import('./own-pages.js')
  mountOwnPages(ofPages, local)
}

async function passkeyPathsOf ({ pathOf }: RouteContext): Promise<PagesContext['passkeyPaths']> {
  const { PASSKEY_SCRIPT_VERSION: v } = await import('../pages/passkey-script.js')
  return { options: pathOf('local/passkeys/options'), script: withQuery(pathOf('local/passkeys/script.js'), { v }) }
}
