import { type Html, html } from '../html.js'

const NAMES: ReadonlyMap<string, string> = new Map([
  ['google', 'Google'],
  ['github', 'GitHub'],
  ['microsoft', 'Microsoft'],
  ['facebook', 'Facebook'],
  ['auth0', 'Auth0'],
  ['dev', 'Development provider'],
  ['local', 'E-mail and password']
])

/** Simple drawings on a square of 24. */
const ICONS: ReadonlyMap<string, Html> = new Map([
  ['google', html`
    <g fill="none" stroke-width="4">
      <path stroke="#ea4335" d="M17.75 7.18A7.5 7.5 0 0 0 5.5 8.25"/>
      <path stroke="#fbbc05" d="M5.5 8.25a7.5 7.5 0 0 0 0 7.5"/>
      <path stroke="#34a853" d="M5.5 15.75a7.5 7.5 0 0 0 11.32 2"/>
      <path stroke="#4285f4" d="M16.82 17.75A7.5 7.5 0 0 0 19.5 12h-7"/>
    </g>`],
  ['github', html`
    <path fill="currentColor" fill-rule="evenodd" d="M4 4.6c0-1.2.9-1.6 1.8-1L9 5.6a13 13 0 0 1 6 0l3.2-2c.9-.6
      1.8-.2 1.8 1v5.2c.7 1 1 2.1 1 3.4 0 4.3-3.4 7.3-9 7.3s-9-3-9-7.3c0-1.3.3-2.4 1-3.4z
      M8.5 11a1.5 2.1 0 1 0 0 4.2 1.5 2.1 0 1 0 0-4.2z m7 0a1.5 2.1 0 1 0 0 4.2 1.5 2.1 0 1 0 0-4.2z"/>`],
  ['microsoft', html`
    <path fill="#f25022" d="M3 3h8.5v8.5H3z"/><path fill="#7fba00" d="M12.5 3H21v8.5h-8.5z"/>
    <path fill="#00a4ef" d="M3 12.5h8.5V21H3z"/><path fill="#ffb900" d="M12.5 12.5H21V21h-8.5z"/>`],
  ['facebook', html`
    <circle cx="12" cy="12" r="10" fill="#fff"/>
    <path fill="none" stroke="#0866ff" stroke-width="2.8" d="M16 6.7h-1.2c-1.6 0-2.4.9-2.4 2.6V22M8.8 13h6.7"/>`],
  ['auth0', html`
    <path fill="currentColor" fill-rule="evenodd" d="M12 2l8 3v6c0 5-3.3 9-8 11-4.7-2-8-6-8-11V5z
      m0 4.5-1.3 3.7H7l3 2.3L8.9 16l3.1-2.2 3.1 2.2-1.1-3.5 3-2.3h-3.7z"/>`],
  ['dev', outline(html`<rect x="2.5" y="4" width="19" height="16" rx="2.5"/><path d="m6.5 9 3 3-3 3m6 0h5"/>`)],
  ['local', outline(html`<rect x="2.5" y="5" width="19" height="14" rx="2"/><path d="m3 7 9 6.5L21 7"/>`)]
])

const KEY = outline(html`<circle cx="8" cy="15" r="4.5"/><path d="M11.5 11.5 20 3m-4 4 3 3"/>`)

function outline (shapes: Html): Html {
  return html`
    <g fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${shapes}</g>`
}

/** What a page calls a provider. A provider without an entry here has the name that it was registered with. */
export function providerName (provider: string): string {
  return NAMES.get(provider) ?? provider
}

export function providerIcon (provider: string): Html {
  return html`
    <svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">${ICONS.get(provider) ?? KEY}</svg>`
}
