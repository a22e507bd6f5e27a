import Bowser from 'bowser'
import type { UserSession } from 'fastify-svc-auth'
import { type Html, html } from '../html.js'
import { time } from './frame.js'

interface DevicesView {
  /** The user's open sessions, this one included. */
  sessions: readonly UserSession[]
  /** Whether the user authenticated recently: only then they may end one. */
  isRecent: boolean
}

/** Where the user is signed in, and a button for each session that ends it. */
export function devicesSection ({ sessions, isRecent }: DevicesView): Html {
  return html`
    <section class="card" aria-labelledby="devices">
      <h2 id="devices">Where you are signed in</h2>
      <ul class="rows">
        ${sessions.map(({ id, current, userAgent, createdAt, lastSeenAt }) => html`
          <li>
            <span class="grow">
              <strong>${deviceName(userAgent)}</strong> ${current && html`<span class="tag">This device</span>`}<br>
              Since ${time(createdAt)}${!current && html`, last seen ${time(lastSeenAt)}`}
            </span>
            ${!current && (isRecent ? endForm(id, userAgent) : confirmLink(userAgent))}
          </li>`)}
      </ul>
      ${sessions.length > 1 && html`
        <form class="choices" method="post" action="/sign-out-everywhere">
          <button class="quiet">Sign out everywhere else</button>
        </form>`}
    </section>`
}

function endForm (id: string, userAgent: string | null): Html {
  return html`
    <form method="post" action="/auth/local/sessions/end">
      <input type="hidden" name="id" value="${id}">
      <input type="hidden" name="next" value="/?done=session_ended">
      <button class="quiet" aria-label="Sign out ${deviceName(userAgent)}">Sign out</button>
    </form>`
}

function confirmLink (userAgent: string | null): Html {
  return html`
    <a class="button quiet" href="/confirm?next=/" aria-label="Confirm and sign out ${deviceName(userAgent)}">Sign out</a>`
}

/** Names a browser in words, such as "Firefox on Linux", as far as it says what it is. */
export function deviceName (userAgent: string | null): string {
  if (userAgent === null || userAgent === '') return 'An unknown device'
  const { browser, os } = Bowser.parse(userAgent)
  return [browser.name, os.name].filter(Boolean).join(' on ') || userAgent
}
