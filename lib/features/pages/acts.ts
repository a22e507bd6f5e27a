/** The pages of the option `pages`. They are loaded only with it. */
import type { Act } from '../../core/act.js'
import type { Section } from '../../core/pages/page.js'
import { removeMethod, rename } from '../account/acts.js'
import { accountPage } from '../account/page.js'
import { confirmPage, forgotPasswordPage, linkSentPage, registerPage, signInPage } from './sign-in.js'
import { createPasskeyPage } from '../passkeys/page.js'
import { factorsPage } from '../second-factor/factors-page.js'

/** The pages and what users do on that of their account, in the order of the document. */
export const pageActs = (sections: readonly Section[]): readonly Act[] => [
  signInPage, registerPage, forgotPasswordPage, linkSentPage, confirmPage, accountPage(sections), factorsPage,
  createPasskeyPage, rename, removeMethod
]
