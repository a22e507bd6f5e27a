import { needed } from '../../core/context.js'
import {
  type Content, type Html, type PageForm, type Texts, action, alert, button, html, htmlForm, section
} from '../../core/pages/elements.js'
import { type Section, page, targetsOf } from '../../core/pages/page.js'
import { textIn } from '../pages/parts.js'
import { isCodeMailed } from '../second-factor/enrolment.js'
import { type FactorPages, factorNameField, mailCodeField } from '../second-factor/factor-pages.js'
import { PASSKEY } from './ceremonies.js'
import type { User } from '../../accounts/account.js'

/**
 * The page between a sign-in by password and the page after it, on which the browser makes a
 * passkey by itself or goes on. After a failure it shows why, and does not try again.
 */
export const createPasskeyPage = page({
  path: '/pages/create-passkey', when: ({ parts }) => parts.passkeys?.createsOnPages === true
}, async (auth, { request, texts, next, failure }) => {
  const { optionsPath: options, scriptPath: script } = needed(auth.parts.passkeys, 'passkeys')
  const after = auth.redirects.afterSuccess(request, next)
  const hidden = { ...targetsOf(auth, 'pages/create-passkey', { next }), next: after }
  const create = { ceremony: 'create', options, action: auth.formPaths.get('local/passkeys/register'), hidden } as const
  return {
    title: texts.factors.addPasskey,
    script,
    content: [failure === null && passkeyForm(texts, create), button(after, texts.common.continue, 'primary')]
  }
})

/** What the pages of factors show of passkeys. */
export const PASSKEY_PAGES: FactorPages = {
  async enrol (auth, { request, texts }, { targets, asksMailCode, look }) {
    const { optionsPath: options, scriptPath: script } = needed(auth.parts.passkeys, 'passkeys')
    if (asksMailCode && !await isCodeMailed(request)) {
      // The form that asks for the code begins a ceremony, which mails it, and leads back here.
      const begin = { ...targets, next: targets.error_next, for: 'register' }
      return { script, content: [action(options, begin, texts.factors.addPasskey, { look }), passkeyHints(texts)] }
    }
    const register = auth.formPaths.get('local/passkeys/register')
    const fields = asksMailCode && mailCodeField(texts)
    const form = { ceremony: 'register', options, action: register, hidden: targets, fields, look } as const
    return { script, content: passkeyForm(texts, form) }
  },
  label: ({ factors }) => factors.passkey,
  item ({ texts }, { id, name }) {
    const kind = texts.factors.passkey
    return { name: name ?? id, kind, remove: 'local/passkeys/remove', rename: 'local/passkeys/rename' }
  },
  section ({ auth, texts, typed, own, saved, look, user }) {
    if (auth.parts.passkeys === null) return null
    const { factors } = texts
    const { ceremonies, optionsPath: options, scriptPath: script } = auth.parts.passkeys
    const { rpId, userId, ...names } = ceremonies.userDetails(user)
    const allAcceptedCredentialIds = own.flatMap(({ kind, id }) => kind === PASSKEY ? id : [])
    // Of a list without the passkeys that the user has, password managers would delete them.
    const isComplete = !hasPasskey(user) || allAcceptedCredentialIds.length > 0
    return {
      script,
      content: section(factors.addPasskey, html`<p>${factors.passkeysText}</p>
${isComplete && passkeySignal('all-accepted-credentials', { rpId, userId, allAcceptedCredentialIds })}${
passkeySignal('current-user-details', { rpId, userId, ...names })}${passkeyForm(texts, {
  ceremony: 'register',
  options,
  action: auth.formPaths.get('local/passkeys/register'),
  hidden: saved,
  look,
  fields: factorNameField(texts, typed.response === undefined ? null : textIn(typed.name), true)
})}`)
    }
  }
}

/** What the account page tells password managers of the user's passkeys. */
export const passkeysSection: Section = {
  name: 'passkeys',
  order: 10,
  show ({ auth, user }) {
    const passkeys = hasPasskey(user) ? auth.parts.passkeys : null
    return passkeys && passkeySignal('current-user-details', { ...passkeys.ceremonies.userDetails(user) })
  },
  script: (auth, user) => hasPasskey(user) ? auth.parts.passkeys?.scriptPath ?? null : null
}

function hasPasskey ({ factors }: User): boolean {
  return factors?.includes(PASSKEY) === true
}

/** A form that the script of passkeys shows, and sends with the field `response`. */
interface PasskeyForm extends Pick<PageForm, 'action' | 'hidden' | 'look'> {
  /**
   * What the script does; with `autofill` it offers passkeys in the field of the e-mail, with
   * `create` the browser makes one by itself.
   */
  ceremony: 'login' | 'autofill' | 'factor' | 'register' | 'create'
  /** The path of the options. */
  options: string
  fields?: Content
  /** What the button says; default what its ceremony does. */
  submit?: string
}

export function passkeyForm (texts: Texts, { ceremony, options, fields, submit, ...others }: PasskeyForm): Content {
  const { factors, errors } = texts
  const isShown = ceremony !== 'autofill' && ceremony !== 'create'
  const isNew = ceremony === 'register'
  return [htmlForm({
    ...others,
    attributes: html` data-passkey="${ceremony}" data-options="${options}" hidden`,
    fields: [
      html`<input type="hidden" name="response">`,
      fields,
      isShown && alert(factors.passkeyFailed, html` data-passkey-failed hidden`),
      isNew && alert(errors.passkey_exists, html` data-passkey-exists hidden`)
    ],
    submit: submit ?? (isNew ? factors.addPasskey : factors.usePasskey)
  }), isShown && passkeyHints(texts)]
}

/** For browsers that do not show forms for passkeys. */
function passkeyHints ({ factors }: Texts): Html {
  return html`<p class="faint" data-passkey-missing hidden>${factors.passkeyMissing}</p>
<noscript><p class="faint">${factors.noScript}</p></noscript>`
}

/** A field by which the script tells that the browser makes passkeys by itself. */
export const createPasskeyField =
  html`<input type="hidden" name="createPasskey" value="on" data-passkey-create disabled>`

/**
 * Makes what the script tells password managers.
 *
 * @see WebAuthn Level 3 section 5.1.10
 */
export function passkeySignal (
  name: 'all-accepted-credentials' | 'unknown-credential' | 'current-user-details',
  details: Readonly<Record<string, unknown>>
): Html {
  return html`<span hidden data-signal-${name}="${JSON.stringify(details)}"></span>`
}
