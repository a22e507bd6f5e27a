/** What the command `mails` writes: each mail in each language, to look at. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isPlainObject } from '../claims.js'
import { CODE_LIFETIME, LINK_LIFETIMES, type Mail } from '../core/mail.js'
import { linkWith } from '../core/mail-links.js'
import { html } from '../core/pages/elements.js'
import { OptionsError } from '../errors.js'
import { ar, de, en, es, fr, ja, type MailText, type MailTextsOptions, mailTexts } from '../mails.js'

/** The module of `--app` has the options under this name, for the application has them too. */
const EXPORT = 'mails'

const BASE = new URL('https://app.example/auth/')

const KINDS = Object.keys(en.kinds).filter((kind): kind is Mail['kind'] => kind in en.kinds)

/**
 * Writes two files for each mail, and a page that links them. Files of the same names are replaced,
 * and others stay.
 */
export async function writeMails (folder: string, app: Readonly<Record<string, unknown>> | null): Promise<object> {
  const mails = mailsOf(app)
  const index = join(folder, 'index.html')
  try {
    await mkdir(folder, { recursive: true })
    for (const { name, html, text } of mails) {
      await writeFile(join(folder, `${name}.html`), html)
      await writeFile(join(folder, `${name}.txt`), text)
    }
    await writeFile(index, indexOf(mails))
  } catch (cause) {
    throw new OptionsError(`--out cannot be written: ${Object(cause).message}`)
  }
  return { written: 2 * mails.length + 1, index }
}

type NamedMail = MailText & { readonly name: string }

function mailsOf (app: Readonly<Record<string, unknown>> | null): NamedMail[] {
  const options = optionsIn(app)
  // Checks the list of languages, too.
  mailTexts(options)
  return (options.languages ?? [en, de, fr, es, ar, ja]).flatMap(texts => {
    const textOf = mailTexts({ ...options, languages: [texts] })
    return KINDS.map(kind => ({ name: `${kind}.${texts.language}`, ...textOf(sampleOf(kind)) }))
  })
}

function optionsIn (app: Readonly<Record<string, unknown>> | null): MailTextsOptions {
  if (app === null) return { name: 'Shop' }
  const { [EXPORT]: options } = app
  if (isPlainObject(options)) return { name: '', ...options }
  throw new OptionsError(`--app must name a module that exports the options of mailTexts as ${EXPORT}`)
}

/** A mail with all that it may have. */
function sampleOf (kind: Mail['kind']): Mail {
  const [token, code] = ['a.sample.token', '123456']
  const about = {
    requestId: 'req-1',
    ip: '192.0.2.1',
    userAgent: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:150.0) Gecko/20100101 Firefox/150.0',
    language: null
  }
  const shared = { to: 'ada@example.com', userId: null, name: 'Ada Lovelace', accountUrl: null, about }
  const none = { url: null, token: null, code: null, expiresIn: null }
  switch (kind) {
    case 'register': case 'verify-email': case 'reset-password': case 'change-email': case 'sign-in': {
      const link = { url: linkWith(token, kind, BASE), token, expiresIn: LINK_LIFETIMES[kind] }
      return kind === 'sign-in' ? { ...shared, ...link, kind, code } : { ...shared, ...link, kind, code: null }
    }
    case 'enrolment': return { ...shared, ...none, kind, code, expiresIn: CODE_LIFETIME }
    case 'domain-lapsed': return { ...shared, ...none, kind, domain: 'example.com' }
    default: return { ...shared, ...none, kind, accountUrl: new URL('pages/account', BASE).href }
  }
}

function indexOf (mails: readonly NamedMail[]): string {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Mails</title>
<h1>Mails</h1>
<ul>
${mails.map(({ name, subject }) =>
  html`<li><a href="${name}.html">${name}</a>, <a href="${name}.txt">as text</a>: ${subject}\n`)}</ul>
</html>
`.source
}
