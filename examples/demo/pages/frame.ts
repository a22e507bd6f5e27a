import type { Principal } from 'fastify-svc-auth'
import { errorSentence } from '../error-sentences.js'
import { type Html, html } from '../html.js'

/** The frame around every page of the application; `path` is that of the page. */
export function page (title: string, content: Html, { principal, path }: { principal: Principal | null, path: string }): Html {
  return document(title, content, html`
    <nav aria-label="Pages">
      ${principal !== null && pageLink('/', 'Account', path)}
      ${pageLink('/admin', 'Administration', path)}
      ${pageLink('/docs', 'API', path)}
      ${principal === null
        ? pageLink('/login', 'Sign in', path)
        : html`<form method="post" action="/auth/logout"><button class="quiet">Sign out</button></form>`}
    </nav>`)
}

/** A page with nothing around it but the name of the application. */
export function document (title: string, content: Html, navigation?: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title} · fastify-svc-auth</title>
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="/style.css">
</head>
<body>
  <header>
    <strong>fastify-svc-auth</strong>
    ${navigation}
  </header>
  <main>
    <h1>${title}</h1>
    ${content}
  </main>
</body>
</html>
`
}

/** @param error what stands in `?error=` */
export function alert (error: unknown): Html | false {
  return error !== undefined && html`<p class="alert" role="alert">${errorSentence(error)}</p>`
}

/** A path as the value of a query parameter; slashes may stay, and are easier to read. */
export function inQuery (path: string): string {
  return encodeURIComponent(path).replaceAll('%2F', '/')
}

export function text (claim: unknown): string {
  return typeof claim === 'string' ? claim : JSON.stringify(claim)
}

function pageLink (href: string, name: string, path: string): Html {
  return html`<a href="${href}"${href === path && html` aria-current="page"`}>${name}</a>`
}
