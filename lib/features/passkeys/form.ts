import { type Content, type Html, type PageForm, type Texts, htmlForm, html } from '../../core/pages/elements.js'

/** A form that the script of passkeys shows, and sends with the field `response`. */
export interface PasskeyForm extends Pick<PageForm, 'action' | 'hidden' | 'look'> {
  /**
   * What the script does; with `autofill` it offers passkeys in the field of the e-mail, with
   * `create` the browser makes one by itself.
   */
  ceremony: 'login' | 'autofill' | 'factor' | 'register' | 'create'
  /** The path of the options. */
  options: string
  fields?: Content
}

export function passkeyForm (texts: Texts, { ceremony, options, fields, ...others }: PasskeyForm): Content {
  const { factors, errors } = texts
  const isShown = ceremony !== 'autofill' && ceremony !== 'create'
  const isNew = ceremony === 'register'
  return [htmlForm({
    ...others,
    attributes: html` data-passkey="${ceremony}" data-options="${options}" hidden`,
    fields: [
      html`<input type="hidden" name="response">`,
      fields,
      isShown && html`<p role="alert" data-passkey-failed hidden>${factors.passkeyFailed}</p>`,
      isNew && html`<p role="alert" data-passkey-exists hidden>${errors.passkey_exists}</p>`
    ],
    submit: isNew ? factors.addPasskey : factors.usePasskey
  }), isShown && passkeyHints(texts)]
}

/** For browsers that do not show forms for passkeys. */
export function passkeyHints ({ factors }: Texts): Html {
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
