/** The front end: what is in index.html, filled in by what the API on another origin answers. */
/* global history, location */

const { api } = await (await fetch('/api.json')).json()
const home = `${location.origin}/`

/** Asks the API as the user of the session, whose cookie the browser keeps for the origin of the API. */
async function ask (path, body) {
  const sent = body && { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
  const response = await fetch(api + path, { credentials: 'include', ...sent })
  const text = await response.text()
  return { isDone: response.ok, answer: text === '' ? null : JSON.parse(text) }
}

function say (role, sentence) {
  const place = document.querySelector(`[role="${role}"]`)
  place.textContent = sentence
  place.hidden = sentence === ''
}

/** Shows the view of the path; at any other path that of a user or a visitor. */
async function show () {
  const { isDone: isUser, answer } = await ask('/me')
  const template = document.getElementById(location.pathname) ?? document.getElementById(isUser ? 'user' : 'visitor')
  const view = template.content.cloneNode(true)
  for (const place of view.querySelectorAll('[data-claim]')) place.textContent = answer.claims[place.dataset.claim]
  for (const place of view.querySelectorAll('[data-providers]')) place.append(...await providerLinks(place.dataset))
  document.getElementById('view').replaceChildren(view)
}

/** Links to sign-ins at providers. They are navigations, so that the API and the provider have their cookies. */
async function providerLinks ({ providers: words, link }) {
  const { answer: names } = await ask('/providers')
  return names.map(name => {
    const query = new URLSearchParams({ next: home, error_next: home, ...(link !== undefined && { link: 'true' }) })
    return Object.assign(document.createElement('a'), {
      href: `${api}/auth/${name}/login?${query}`,
      textContent: `${words} ${name}`
    })
  })
}

document.addEventListener('submit', async event => {
  event.preventDefault()
  const form = event.target
  const query = new URLSearchParams(location.search)
  const fields = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''))
  if ('token' in form.dataset) fields.token = query.get('token')
  const { isDone, answer } = await ask(form.dataset.path, fields)
  say('alert', isDone ? '' : answer.message)
  say('status', isDone ? form.dataset.done ?? '' : '')
  // The API has put the page there that asked for it, but anybody can write a link with another one.
  const next = 'next' in form.dataset ? query.get('next') ?? home : home
  if (isDone && [location.origin, api].includes(new URL(next).origin)) {
    if (new URL(next).origin === api) return location.assign(next)
    history.replaceState(null, '', next)
    await show()
  }
})

const error = new URLSearchParams(location.search).get('error')
if (error !== null) say('alert', `This did not work: ${error}.`)
await show()
