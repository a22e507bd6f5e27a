/** The front end: what is in index.html, filled in by what the API on another origin answers. */
/* global history, location */
import createClient from '/openapi-fetch.js'

const { api } = await (await fetch('/api.json')).json()
const home = `${location.origin}/`

/**
 * Asks the API as the user of the session, whose cookie the browser keeps for the origin of the API. The types are made of the
 * document that the package ships: npx openapi-typescript node_modules/fastify-svc-auth/dist/openapi.json -o auth.d.ts
 *
 * @type {import('openapi-fetch').Client<import('./auth.js').paths>}
 */
const auth = createClient({ baseUrl: api, credentials: 'include' })

function say (role, sentence) {
  const place = document.querySelector(`[role="${role}"]`)
  place.textContent = sentence
  place.hidden = sentence === ''
}

/** Shows the view of the path; at any other path that of a user or a visitor. */
async function show () {
  const { data: session, error } = await auth.GET('/auth/session')
  if (session === undefined) return say('alert', error.message)
  const { principal, offers } = session
  const template = document.getElementById(location.pathname) ??
    document.getElementById(principal === null ? 'visitor' : 'user')
  const view = template.content.cloneNode(true)
  for (const place of view.querySelectorAll('[data-email]')) place.textContent = principal.claims.email
  for (const place of view.querySelectorAll('[data-providers]')) {
    place.append(...offers.providers.map(provider => providerLink(provider, place.dataset)))
  }
  document.getElementById('view').replaceChildren(view)
}

/**
 * Leads to a sign-in at a provider, by a link; to add an identity, by a form. Both are navigations, so that the API and the
 * provider have their cookies.
 */
function providerLink (provider, { providers: words, link }) {
  const [action, textContent] = [`${api}/auth/${provider}/login`, `${words} ${provider}`]
  const fields = { next: home, error_next: home }
  if (link === undefined) {
    return Object.assign(document.createElement('a'), { href: `${action}?${new URLSearchParams(fields)}`, textContent })
  }
  const form = Object.assign(document.createElement('form'), { method: 'post', action })
  // Without error_next, a session that is too old leads to the page that confirms it.
  for (const [name, value] of Object.entries({ next: home, link: 'true' })) {
    form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }))
  }
  form.append(Object.assign(document.createElement('button'), { textContent }))
  return form
}

/** Lists what the account has, to keep or to remove: another person may have made it with the address of the user. */
function offerChoice (form, { methods, keep }) {
  for (const element of form.querySelectorAll('button, p')) element.remove()
  const names = methods.map(({ kind, provider }) => kind === 'provider' ? provider : kind)
  const list = Object.assign(document.createElement('p'), { textContent: `The account has: ${names.join(', ')}.` })
  const buttons = [[keep, 'All mine: keep it'], ['remove', 'Not mine: remove it']].map(([value, textContent]) =>
    Object.assign(document.createElement('button'), { name: 'existing', value, textContent }))
  form.append(list, ...buttons)
}

document.addEventListener('submit', async event => {
  const form = event.target
  if (form.dataset.path === undefined) return
  event.preventDefault()
  const query = new URLSearchParams(location.search)
  const fields = Object.fromEntries([...new FormData(form, event.submitter)].filter(([, value]) => value !== ''))
  if ('token' in form.dataset) fields.token = query.get('token')
  const { response: { ok: isDone }, error } = await auth.POST(form.dataset.path, { body: fields })
  say('alert', isDone ? '' : error.message)
  say('status', isDone ? form.dataset.done ?? '' : '')
  if (error?.code === 'choice_required') offerChoice(form, error)
  // The API has put the page there that asked for it, but anybody can write a link with another one.
  const next = 'next' in form.dataset ? query.get('next') ?? home : home
  if (isDone && [location.origin, api].includes(new URL(next).origin)) {
    if (new URL(next).origin === api) return location.assign(next)
    history.replaceState(null, '', next)
    await show()
  }
})

const code = new URLSearchParams(location.search).get('error')
if (code !== null) say('alert', `This did not work: ${code}.`)
await show()
