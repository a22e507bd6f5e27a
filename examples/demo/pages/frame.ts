import type { Principal } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { doneSentence, errorSentence } from '../sentences.js'

export interface View {
  principal: Principal | null
  /** The path of the page. */
  path: string
  /** The value of `?error=`. */
  error?: unknown
  /** The value of `?done=`. */
  done?: unknown
  /** A page with one form is narrow. */
  layout?: 'narrow' | 'wide'
}

/** A page of the application. */
export function page (title: string, content: Html, { principal, path, error, done, layout = 'wide' }: View): Html {
  const success = doneSentence(done)
  const message = error !== undefined
    ? html`<p class="message" role="alert">${errorSentence(error)}</p>`
    : success !== undefined && html`<p class="message" role="status">${success}</p>`
  const navigation = html`
    <nav aria-label="Pages">
      ${principal !== null && pageLink('/', 'Account', path)}
      ${pageLink('/admin', 'Administration', path)}
      ${pageLink('/docs', 'API', path)}
      ${principal === null
        ? pageLink('/login', 'Sign in', path)
        : html`
          <form method="post" action="/auth/logout">
            <input type="hidden" name="next" value="/login?done=signed_out">
            <button class="plain">Sign out</button>
          </form>`}
    </nav>`
  return document({ title, brand: WORDMARK, navigation, message, content, layout })
}

const WORDMARK = html`
  <a class="wordmark" href="/">
    <img src="/icon.svg" alt="" width="32" height="32"><span>fastify-<strong>svc-auth</strong></span>
  </a>`

interface Document {
  title: string
  /** The start of the header. */
  brand: Html
  navigation?: Html
  message?: Html | false
  content: Html
  layout: 'narrow' | 'wide'
}

/** The document of a page, also of one that is not the application's. */
export function document ({ title, brand, navigation, message, content, layout }: Document): Html {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title} · fastify-svc-auth</title>
  <link rel="icon" href="/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <header>
    <div>
      ${brand}
      ${navigation}
    </div>
  </header>
  <main class="${layout}">
    ${message}
    <h1>${title}</h1>
    ${content}
  </main>
</body>
</html>
`
}

/** A path as the value of a query parameter; slashes may stay, and are easier to read. */
export function inQuery (path: string): string {
  return encodeURIComponent(path).replaceAll('%2F', '/')
}

export function text (claim: unknown): string {
  return typeof claim === 'string' ? claim : JSON.stringify(claim)
}

const MINUTES = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })

export function time (date: Date): Html {
  return html`<time datetime="${date.toISOString()}">${MINUTES.format(date)} UTC</time>`
}

function pageLink (href: string, name: string, path: string): Html {
  return html`<a href="${href}"${href === path && html` aria-current="page"`}>${name}</a>`
}
