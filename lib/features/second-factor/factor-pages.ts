import type { Asking, AuthContext } from '../../core/context.js'
import type { View } from '../../core/pages/layout.js'
import { type Content, Html, type Texts, codeField, field, html } from '../../core/pages/elements.js'
import type { UserFactor } from '../app-auth/users.js'
import type { User } from '../../accounts/account.js'
import type { Targets } from '../../core/pages/page.js'

declare module '../../core/context.js' {
  interface FactorTraits {
    /** What the pages of factors show of it. */
    readonly pages?: () => Promise<FactorPages>
  }
}

/** What the pages of factors show of a method. */
export interface FactorPages {
  /** Asks the user to set the factor up. */
  readonly enrol?: (auth: AuthContext, view: View, setUp: SetUp) => Promise<Asking>
  /** What it is called; absent for what is not listed. */
  readonly label?: (texts: Texts) => string
  /** How one is listed. */
  readonly item?: (view: FactorsView, factor: UserFactor) => FactorItem
  /** The button below the list. */
  readonly setUp?: (view: FactorsView) => Content
  /** A section below; null for none. */
  readonly section?: (view: FactorsView) => Asking | null
}

export interface FactorItem {
  readonly name: string
  /** What it is, where the name does not say it. */
  readonly kind: string | null
  /** The paths below the prefix by which it is removed and, if the user names it, renamed. */
  readonly remove: string
  readonly rename: string | null
}

export interface FactorsView extends Pick<View, 'texts' | 'typed'> {
  readonly auth: AuthContext
  readonly user: User
  readonly own: readonly UserFactor[]
  readonly saved: Targets
  /** How the button looks that sets up the first factor. */
  readonly look: 'primary' | 'plain'
}

export interface SetUp {
  readonly targets: Targets
  /** Whether the user has to enter a code that is sent by e-mail, too. */
  readonly asksMailCode: boolean
  /** The page to go back to; null where a sign-in waits for the factor. */
  readonly back: string | null
  /** How its button looks. */
  readonly look?: 'primary' | 'plain'
}

export function factorNameField ({ factors }: Texts, value: string | null, isOptional = false): Html {
  const attributes = html` maxlength="64"`
  return field({
    name: 'name', label: factors.passkeyName, type: 'text', autocomplete: 'off', value, isOptional, attributes
  })
}

export function mailCodeField ({ factors }: Texts): Html {
  return codeField('mailCode', factors.mailCode, 'numeric', factors.mailText)
}
