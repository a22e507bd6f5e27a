/** The pages of the option `pages`. They are loaded only with it. */
import type { Act } from '../core/act.js'
import { removeMethod, rename } from './account/acts.js'
import { account } from './account/page.js'
import { confirm, forgotPassword, linkSent, register, signIn } from './sign-in-pages.js'
import { createPasskey } from './passkeys/page.js'
import { factors } from './second-factor/factors-page.js'

/** The pages and what users do on that of their account, in the order of the document. */
export const PAGE_ACTS: readonly Act[] = [
  signIn, register, forgotPassword, linkSent, confirm, account, factors, createPasskey, rename, removeMethod
]
