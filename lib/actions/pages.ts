/** The pages of the option `pages`. They are loaded only with it. */
import type { Act } from '../web/act.js'
import { removeMethod, rename } from './account.js'
import { account } from './pages/account.js'
import { confirm } from './pages/confirm.js'
import { createPasskey } from './pages/create-passkey.js'
import { factors } from './pages/factors.js'
import { forgotPassword, linkSent } from './pages/forgot-password.js'
import { register } from './pages/register.js'
import { signIn } from './pages/sign-in.js'

/** The pages and what users do on that of their account, in the order of the document. */
export const PAGE_ACTS: readonly Act[] = [
  signIn, register, forgotPassword, linkSent, confirm, account, factors, createPasskey, rename, removeMethod
]
