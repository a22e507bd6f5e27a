import { type Html, html } from '../html.js'

const TONES = 6

/** The picture of a user; initials on a colour of the user's own where there is none. */
export function avatar ({ name, email, picture }: { name?: unknown, email?: unknown, picture?: unknown }): Html {
  const text = String(name ?? email ?? '?')
  if (typeof picture === 'string') return html`<img class="avatar" src="${picture}" alt="">`
  const tone = Array.from(text).reduce((sum, character) => sum + (character.codePointAt(0) ?? 0), 0) % TONES
  return html`<span class="avatar" data-tone="${tone}" aria-hidden="true">${initials(text)}</span>`
}

/** Of the first and the last word. */
function initials (text: string): string {
  const words = text.replace(/@.*/, '').split(/[\s._-]+/).filter(word => word !== '')
  const letters = [words[0], ...words.slice(1).slice(-1)].map(word => Array.from(word ?? '?')[0])
  return letters.join('').toUpperCase()
}
