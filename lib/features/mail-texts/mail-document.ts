/** How a mail looks, in the part of HTML and CSS that mail clients have in common. */
import { type Content, type Html, html, sentence } from '../../core/pages/elements.js'

/** A sentence, with what replaces its names in braces. */
export interface Words {
  readonly words: string
  readonly values?: Readonly<Record<string, string>>
}

/** A part of a mail, in order: however a mail looks, it says this. */
export type Part =
  Words |
  /** Sentences of one paragraph. */
  { readonly lines: readonly Words[] } |
  /** With a button, for HTML, which has the link in words below it. */
  { readonly link: string, readonly before: string, readonly shown?: string, readonly button?: string } |
  { readonly code: string }

/** How the mails of an application look, and who signs them. */
export interface MailLook {
  readonly name: string
  /** Six hexadecimal digits after `#`. */
  readonly brand: string
  readonly logo?: Readonly<{ url: string, width: number, height: number, alt: string }> | undefined
  readonly address?: string | undefined
}

interface MailContent {
  readonly language: string
  readonly direction: 'ltr' | 'rtl'
  readonly subject: string
  /** What clients list beside the subject. */
  readonly preheader: string
  readonly parts: readonly Part[]
  /** What is below the mail. */
  readonly footer: readonly Part[]
}

const LIGHT = { back: '#f6f7f9', card: '#ffffff', text: '#1f2937', faint: '#5b6472', rule: '#e2e5ea', edge: '#868e9c' }
const DARK: typeof LIGHT =
  { back: '#0b0f17', card: '#151b26', text: '#e5e7eb', faint: '#a3adbb', rule: '#2b3444', edge: '#6b7685' }

const SANS = 'Segoe UI, -apple-system, Roboto, Helvetica, Arial, sans-serif'
const MONOSPACE = 'ui-monospace, Menlo, Consolas, Courier New, monospace'

/** Colours stand in each element: some clients have no style sheets, and invert what they find. */
const TEXT = `margin: 0 0 16px; color: ${LIGHT.text}; font: 16px/24px ${SANS}`
const FAINT = `margin: 0 0 16px; color: ${LIGHT.faint}; font: 13px/20px ${SANS}`

const TABLE = html`role="presentation" cellpadding="0" cellspacing="0" border="0"`
/** Outlook on Windows knows no greatest width. */
const WIDTH = html`<!--[if mso]><table ${TABLE} align="center" width="560"><tr><td><![endif]-->`
const END_OF_WIDTH = html`<!--[if mso]></td></tr></table><![endif]-->`

/** Makes the document: tables for Outlook, and a dark style for clients that know style sheets. */
export function mailDocument (content: MailContent, look: MailLook): string {
  const { language, direction, subject, preheader, parts, footer } = content
  const { name, brand, address } = look
  return html`<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${subject}</title>
<style>
:root { color-scheme: light dark; supported-color-schemes: light dark; }
@media (max-width: 480px) { .card { padding: 24px 16px 8px !important; } }
@media (prefers-color-scheme: dark) {
.back { background-color: ${DARK.back} !important; }
.card { background-color: ${DARK.card} !important; border-color: ${DARK.rule} !important; }
.text { color: ${DARK.text} !important; }
.faint { color: ${DARK.faint} !important; }
.edge { border-color: ${edgeOf(brand, DARK)} !important; }
}
</style>
</head>
<body class="back" style="margin: 0; padding: 0; background-color: ${LIGHT.back}">
<div role="article" aria-roledescription="email" aria-label="${subject}" lang="${language}" dir="${direction}">
<div style="display: none; max-height: 0; overflow: hidden; mso-hide: all">${preheader}</div>
<table ${TABLE} class="back" width="100%" bgcolor="${LIGHT.back}" style="background-color: ${LIGHT.back}">
<tr><td style="padding: 32px 12px">
${WIDTH}<table ${TABLE} align="center" width="100%" style="max-width: 560px; margin: 0 auto">
<tr><td style="padding: 0 0 16px">${head(look)}</td></tr>
<tr><td class="card" bgcolor="${LIGHT.card}" style="padding: 32px 32px 16px; background-color: ${LIGHT.card}; ${
  `border: 1px solid ${LIGHT.rule}; border-radius: 20px`}">
<h1 class="text" style="margin: 0 0 16px; color: ${LIGHT.text}; font: 600 20px/28px ${SANS}">${subject}</h1>
${parts.map(part => shown(part, brand))}</td></tr>
<tr><td style="padding: 24px 0 0">
${footer.map(part => faint(inWords(part)))}${faint(html`${name}${address && html`<br>${address}`}`)}</td></tr>
</table>${END_OF_WIDTH}
</td></tr>
</table>
</div>
</body>
</html>
`.source
}

function head ({ name, logo }: MailLook): Html {
  if (logo === undefined) return html`<p class="text" style="${TEXT}; margin: 0; font-weight: 600">${name}</p>`
  const { url, width, height, alt } = logo
  return html`<img src="${url}" width="${String(width)}" height="${String(height)}" alt="${alt}" class="text" ${
    html`style="${TEXT}; margin: 0; display: block; border: 0"`}>`
}

function shown (part: Part, brand: string): Content {
  if ('link' in part && part.button !== undefined) return [button(part.link, part.button, brand), faint(inWords(part))]
  if ('code' in part) {
    // Digits run from left to right in each script.
    return html`<p class="back text" style="${TEXT}; padding: 12px 16px; background-color: ${LIGHT.back}; ${
      `border-radius: 10px; font: 600 28px/36px ${MONOSPACE}; letter-spacing: 4px`}">${part.code}</p>\n`
  }
  return 'lines' in part ? faint(inWords(part)) : html`<p class="text" style="${TEXT}">${inWords(part)}</p>\n`
}

function faint (content: Content): Html {
  return html`<p class="faint" style="${FAINT}">${content}</p>\n`
}

function inWords (part: Part): Content {
  if ('code' in part) return part.code
  if ('link' in part) {
    const { link, before, shown = link } = part
    return html`${before}<br><a href="${link}" style="color: inherit; word-break: break-all">${shown}</a>`
  }
  if ('words' in part) return sentence(part.words, part.values ?? {})
  return part.lines.map((line, index) => [index > 0 && html`<br>`, inWords(line)])
}

/** A cell of a table, which each client fills; the link in it is as large. */
function button (link: string, label: string, brand: string): Html {
  const color = textOn(brand)
  return html`<table ${TABLE} style="margin: 8px 0 24px"><tr><td class="edge" align="center" bgcolor="${brand}" ${
    html`style="border: 1px solid ${edgeOf(brand, LIGHT)}; border-radius: 10px; background-color: ${brand}; ${
      'mso-padding-alt: 0 24px'}"`}><a href="${link}" ${
    html`style="display: block; padding: 0 24px; color: ${color}; font: 600 15px/42px ${SANS}; text-decoration: none"`
  }>${label}</a></td></tr></table>\n`
}

/** Black or white, whichever has more contrast: at least 4.58 to 1 for each colour. */
function textOn (brand: string): string {
  return luminanceOf(brand) > 0.179 ? '#000000' : '#ffffff'
}

/** The border of the button, which shows where it is on a card of nearly its colour. */
function edgeOf (brand: string, { card, edge }: typeof LIGHT): string {
  const [darker = 0, lighter = 0] = [brand, card].map(luminanceOf).sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05) < 1.5 ? edge : brand
}

/** @see WCAG 2.2, relative luminance */
function luminanceOf (color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(start => {
    const part = Number.parseInt(color.slice(start, start + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
