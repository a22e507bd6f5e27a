import { randomBytes, randomUUID } from 'node:crypto'
import type { Trial } from '../parts/measure.js'
import { type Answer, type Question, type Server, ask } from '../parts/server.js'
import { BASE_URL, CLIENT, REDIRECT_URI, challengeOf, consent } from './authorization.js'

/** Something that is done once, is timed, and has left something to look at. */
export interface Visit {
  make (): Promise<void>
  /** @throws unless the visit has come to what it should */
  check (): Promise<void>
}

export function visits (next: () => Visit): Trial<Visit> {
  return {
    choose: next,
    call: visit => visit.make(),
    check () {},
    // Nothing has to be undone, but whoever looks asks the application.
    undo: async made => { for (const visit of made) await visit.check() }
  }
}

/** A browser of somebody who has never been at the application, and signs in. */
export class Browser implements Visit {
  readonly #sub = randomUUID()
  readonly #server: Server
  readonly #start: Question
  readonly #cookies = new Map<string, string>()

  /** @param start what the button to sign in sends */
  constructor (server: Server, start: Question) {
    this.#server = server
    this.#start = start
  }

  async make (): Promise<void> {
    const { status, headers, text } = await this.#ask(this.#start)
    const { location } = headers
    if (typeof location !== 'string') throw new Error(`the sign-in did not start: ${status} ${text}`)
    await this.#ask({ method: 'GET', path: consent(location, this.#sub) })
  }

  async check (): Promise<void> {
    const { status, text } = await this.#ask({ method: 'GET', path: '/me' })
    if (status !== 200 || !text.includes(`"${this.#sub}"`)) throw new Error(`nobody is signed in: ${status} ${text}`)
  }

  async #ask (question: Question): Promise<Answer> {
    const cookie = Array.from(this.#cookies, ([name, value]) => `${name}=${value}`).join('; ')
    const answer = await ask(this.#server, { ...question, headers: { ...question.headers, ...(cookie !== '' && { cookie }) } })
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, value)
    }
    return answer
  }
}

/** What a sign-in asks of the provider, asked without an application: the token request, and userinfo for those who want it. */
export class Direct implements Visit {
  readonly #server: Server
  readonly #wantsUserinfo: boolean
  readonly #sub = randomUUID()
  readonly #verifier = randomBytes(32).toString('base64url')
  readonly #authorizationUrl: string
  #told = ''

  constructor (server: Server, wantsUserinfo: boolean) {
    this.#server = server
    this.#wantsUserinfo = wantsUserinfo
    this.#authorizationUrl = `${server.origin}/direct/authorize?${new URLSearchParams({
      client_id: CLIENT.id,
      redirect_uri: REDIRECT_URI,
      response_type: 'code',
      code_challenge: challengeOf(this.#verifier),
      code_challenge_method: 'S256',
      state: 'the state',
      nonce: randomBytes(32).toString('base64url')
    })}`
  }

  async make (): Promise<void> {
    const { searchParams } = new URL(consent(this.#authorizationUrl, this.#sub), BASE_URL)
    const form = { grant_type: 'authorization_code', code: searchParams.get('code') ?? '', redirect_uri: REDIRECT_URI, code_verifier: this.#verifier, client_id: CLIENT.id, client_secret: CLIENT.secret }
    const { text } = await ask(this.#server, { method: 'POST', path: '/direct/token', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(form).toString() })
    const { access_token: token }: { access_token?: string } = JSON.parse(text)
    const userinfo = this.#wantsUserinfo ? await ask(this.#server, { method: 'GET', path: '/direct/userinfo', headers: { authorization: `Bearer ${token}` } }) : null
    this.#told = userinfo?.text ?? text
  }

  async check (): Promise<void> {
    if (!this.#told.includes(this.#wantsUserinfo ? `"${this.#sub}"` : '"id_token"')) throw new Error(`the provider told nothing: ${this.#told}`)
  }
}
