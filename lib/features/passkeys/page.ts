import { createsPasskeys, needed } from '../../core/context.js'
import { button } from '../../core/pages/elements.js'
import { passkeyForm } from './form.js'
import { page, targetsOf } from '../../core/pages/page.js'

/**
 * The page between a sign-in by password and the page after it, on which the browser makes a
 * passkey by itself or goes on. After a failure it shows why, and does not try again.
 */
export const createPasskeyPage = page({
  path: '/pages/create-passkey', when: createsPasskeys
}, async (auth, { request, texts, next, failure }) => {
  const { options, script } = needed(auth.passkeyPaths, 'passkeys')
  const after = auth.redirects.afterSuccess(request, next)
  const hidden = { ...targetsOf(auth, 'pages/create-passkey', { next }), next: after }
  const create = { ceremony: 'create', options, action: auth.formPaths.get('local/passkeys/register'), hidden } as const
  return {
    title: texts.factors.addPasskey,
    script,
    content: [failure === null && passkeyForm(texts, create), button(after, texts.common.continue, 'primary')]
  }
})
