import { hash } from 'node:crypto'

/**
 * The script of pages with passkeys. It runs with `type="module"`, or at the end of a page.
 *
 * - `form[data-passkey]`, one of `register`, `login` and `factor`, is shown where the browser has
 *   passkeys, and `[data-passkey-missing]` elsewhere. It is sent with the response to the options
 *   of `data-options` in the field `response`; with `{}` when they are refused: its route says why.
 * - `form[data-passkey=create]` is never shown. It is sent with a passkey that the browser made by
 *   itself; without one within five seconds the page goes on to the field `next`. Fields with
 *   `data-passkey-create` are enabled where the browser can do that.
 * - `form[data-passkey=autofill]` is never shown. It is sent when the user picks a passkey that the
 *   browser offers in a field with `autocomplete="username webauthn"`.
 * - On a page with `[data-passkey-again]` the first shown form is sent once more, by itself.
 * - In a form, `[data-passkey-exists]` is shown where the authenticator has a passkey of this user
 *   already, and `[data-passkey-failed]` after any other end without a response. The checkboxes
 *   `remember` and `trust` of another form are sent along, and fields with `data-passkey-along`.
 * - A field `token` of the form, of a link that registers, is sent for the options, too.
 * - `[data-signal-all-accepted-credentials]`, `[data-signal-unknown-credential]` and
 *   `[data-signal-current-user-details]` hold, as JSON, what password managers are told.
 */
export const PASSKEY_SCRIPT = `{
const forms = [...document.querySelectorAll('form[data-passkey]')]
const show = (selector, isShown, root = document) => {
  for (const element of root.querySelectorAll(selector)) element.hidden = !isShown
}
const Passkey = self.PublicKeyCredential
const isSupported = !!Passkey?.parseCreationOptionsFromJSON && !!Passkey.parseRequestOptionsFromJSON
let running, renewal
const ask = (form, fields, signal) => fetch(form.dataset.options, {
  method: 'POST', signal, headers: { accept: 'application/json', 'content-type': 'application/json' },
  body: JSON.stringify(fields)
})
const run = async (form, mediation) => {
  running?.abort()
  clearTimeout(renewal)
  const { signal } = running = new AbortController()
  const { passkey: ceremony } = form.dataset
  show('[data-passkey-exists], [data-passkey-failed]', false, form)
  try {
    const { lost, token } = form.elements
    const fields = { for: ceremony === 'autofill' ? 'login' : ceremony, lost: lost?.value, token: token?.value }
    const answer = await ask(form, fields, signal)
    if (!answer.ok && mediation) return
    const options = answer.ok ? await answer.json() : null
    if (mediation) renewal = setTimeout(renew, options.timeout - 60000)
    const credential = options === null ? {} : ceremony === 'register'
      ? await navigator.credentials.create({ signal, publicKey: Passkey.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ signal, mediation, publicKey: Passkey.parseRequestOptionsFromJSON(options) })
    form.elements.response.value = JSON.stringify(credential)
    const along = '[name=remember]:checked, [name=trust]:checked, [data-passkey-along]'
    for (const { name, value } of document.querySelectorAll(along)) {
      const field = Object.assign(document.createElement('input'), { type: 'hidden', name, value })
      if (!form.elements[name]) form.append(field)
    }
    form.submit()
  } catch (error) {
    if (signal.aborted || mediation) return
    show(error.name === 'InvalidStateError' ? '[data-passkey-exists]' : '[data-passkey-failed]', true, form)
    autofill()
  }
}
const autofill = async () => {
  const form = forms.find(form => form.dataset.passkey === 'autofill')
  const before = running
  if (form && await Passkey.isConditionalMediationAvailable?.() && running === before) run(form, 'conditional')
}
const create = async form => {
  try {
    const signal = AbortSignal.timeout(5000)
    const publicKey = Passkey.parseCreationOptionsFromJSON(await (await ask(form, { for: 'create' }, signal)).json())
    const credential = await navigator.credentials.create({ mediation: 'conditional', publicKey, signal })
    form.elements.response.value = JSON.stringify(credential)
    form.submit()
  } catch {
    location.replace(form.elements.next.value)
  }
}
const renew = () => {
  if (document.hidden) document.addEventListener('visibilitychange', autofill, { once: true })
  else autofill()
}
show('form[data-passkey]:not([data-passkey=autofill], [data-passkey=create])', isSupported)
show('[data-passkey-missing]', !isSupported)
for (const form of forms) form.addEventListener('submit', event => { event.preventDefault(); run(form) })
const again = document.querySelector('[data-passkey-again]') && forms.find(form => !form.hidden)
if (again) {
  again.append(Object.assign(document.createElement('input'), { type: 'hidden', name: 'again', value: 'on' }))
  run(again)
} else if (isSupported) autofill()
for (const form of forms) if (form.dataset.passkey === 'create') create(form)
Passkey?.getClientCapabilities?.().then(({ conditionalCreate }) => {
  for (const field of document.querySelectorAll('[data-passkey-create]')) field.disabled = !conditionalCreate
})
for (const signal of ['signalAllAcceptedCredentials', 'signalUnknownCredential', 'signalCurrentUserDetails']) {
  const attribute = 'data-' + signal.replace(/[A-Z]/g, letter => '-' + letter.toLowerCase())
  for (const element of document.querySelectorAll('[' + attribute + ']')) {
    Passkey?.[signal]?.(JSON.parse(element.getAttribute(attribute))).catch(() => {})
  }
}
}
`

/** Changes with the script. */
export const PASSKEY_SCRIPT_VERSION = hash('sha256', PASSKEY_SCRIPT).slice(0, 16)
