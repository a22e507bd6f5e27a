import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import type { Browser } from '../helpers/browser.js'

/** A form as a page shows it. */
export interface ShownForm {
  action: string
  /** The names of all fields. */
  names: string[]
  /** The fields that the user does not see. */
  hidden: Record<string, string>
  /** What its first button adds, if that has a value. */
  pressed: Record<string, string>
  /** The values of the others. */
  values: Record<string, string>
  /** The checkboxes that are checked. */
  checked: string[]
}

/** A page as a browser without scripts reads it. */
export interface ShownPage {
  url: string
  status: number
  html: string
  lang: string
  title: string
  text: string
  alert: string | null
  notice: string | null
  links: string[]
  /** The texts that the page lets its reader save, by the names of their files. */
  files: Record<string, string>
  forms: ShownForm[]
  /** What the rows that are open say. */
  open: string[]
  formOf: (action: string) => ShownForm | undefined
}

/** A user without scripts. */
export interface Reader {
  /** Opens a page. */
  open: (path: string, headers?: Record<string, string>) => Promise<ShownPage>
  /** Sends a form of a page with what the user typed, and follows the redirect. */
  send: (form: ShownForm | undefined, typed?: Record<string, string>) => Promise<ShownPage>
}

/** Lets a browser read pages. */
export function readerOf (t: Test, browser: Browser): Reader {
  const follow = async (answer: LightMyRequestResponse): Promise<ShownPage> => {
    const { location } = answer.headers
    return location === undefined ? pageOf(answer) : follow(await browser.get(location, HTML))
  }
  return {
    open: async (path, headers) => follow(await browser.get(path, { ...HTML, ...headers })),
    async send (form, typed = {}) {
      if (form === undefined) throw new Error('the page has no such form')
      for (const name of Object.keys(typed)) t.ok(form.names.includes(name), `the form has a field ${name}`)
      return follow(await browser.submit(form.action, { ...form.hidden, ...form.pressed, ...typed }))
    }
  }
}

const HTML = { accept: 'text/html' }

const plain = (html: string): string => html
  .replaceAll(/<[^>]*>/g, ' ')
  .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
  .replaceAll(/\s+/g, ' ').trim()

/** Reads the answer of a page. */
export function pageOf (answer: LightMyRequestResponse): ShownPage {
  const { body: html, statusCode: status } = answer
  const one = (pattern: RegExp): string | null => {
    const found = pattern.exec(html)?.[1]
    return found === undefined ? null : plain(found)
  }
  const found = Array.from(html.matchAll(/<form method="post" action="([^"]*)"[^>]*>([^]*?)<\/form>/g))
  const forms = found.flatMap(([, action = '', form = '']) => {
    const inputs = Array.from(form.matchAll(/<(?:input|select)\b[^>]*>/g), ([input]) => ({
      type: /type="([^"]*)"/.exec(input)?.[1],
      isChecked: input.endsWith(' checked>'),
      name: /name="([^"]*)"/.exec(input)?.[1],
      value: /value="([^"]*)"/.exec(input)?.[1]
    }))
    const named = inputs.filter(({ name }) => name !== undefined)
    const valuesOf = (isHidden: boolean) => Object.fromEntries(named
      .filter(({ type, value }) => (type === 'hidden') === isHidden && value !== undefined)
      .map(({ name, value = '' }) => [name, plain(value)]))
    // A second button sends the form elsewhere.
    const actions = [action, ...Array.from(form.matchAll(/formaction="([^"]*)"/g), ([, other = '']) => other)]
    const [pressed] = Array.from(form.matchAll(/<button type="submit"[^>]* name="([^"]*)" value="([^"]*)"/g),
      ([, name = '', value = '']) => ({ [name]: value }))
    const names = [...named.map(({ name = '' }) => name), ...Object.keys(pressed ?? {})]
    const checked = named.flatMap(({ name = '', isChecked }) => isChecked ? name : [])
    return actions.map(action => ({ action, names, checked, pressed: pressed ?? {}, hidden: valuesOf(true), values: valuesOf(false) }))
  })
  const own = html.replaceAll(/<header[^]*<\/header>|<details class="languages">[^]*?<\/details>/g, '')
  const links = Array.from(own.matchAll(/<a [^>]*href="([^"]*)"/g), ([, href = '']) => plain(href))
  const files = html.matchAll(/<a [^>]*download="([^"]*)"\s+href="data:text\/plain;charset=utf-8,([^"]*)"/g)
  return {
    url: String(answer.raw.req.url),
    status,
    html,
    lang: one(/<html lang="([^"]*)"/) ?? '',
    title: one(/<h1 [^>]*>([^]*?)<\/h1>/) ?? '',
    text: plain(html.replace(/<style>[^]*<\/style>|<details class="languages">[^]*?<\/details>/g, '')),
    alert: one(/<p class="error" data-part="error" role="alert" id="failure"[^>]*>([^]*?)<\/p>/),
    notice: one(/<p class="notice" data-part="notice" role="status">([^]*?)<\/p>/),
    // The name of the application is a link on each page.
    links: links.filter(href => !href.startsWith('data:')),
    files: Object.fromEntries(Array.from(files, ([, name = '', text = '']) => [name, decodeURIComponent(plain(text))])),
    forms,
    open: Array.from(html.matchAll(/<details(?: class="names")? open><summary[^>]*>([^]*?)<\/summary>/g), ([, head = '']) => plain(head)),
    formOf: action => forms.find(form => form.action === action)
  }
}
