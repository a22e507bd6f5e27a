import { Visitor } from '../helpers/visitor.js'

/** A session as its user knows it. */
interface KnownSession {
  cookie: string
  userId: string
  /** Null when an answer is missing that would tell. */
  isOpen: boolean | null
  /** What may be in the cart: more than one where an answer is missing. */
  carts: Array<string | null>
}

/** A user who notes what the application acknowledges. */
export class LedgerUser {
  readonly sessions: KnownSession[] = []
  readonly #credentials: { email: string, password: string }
  readonly #subject: string
  /** The ids of the user with the password and of the one at the provider. */
  readonly #userIds: { password: string, provider: string }
  #steps = 0

  private constructor (name: string, userIds: { password: string, provider: string }) {
    this.#credentials = credentialsOf(name)
    this.#subject = name
    this.#userIds = userIds
  }

  /** Registers a user with a password, and another one with an identity at the provider. */
  static async register (origin: string, name: string): Promise<LedgerUser> {
    const [registered, signedIn] = [new Visitor(origin), new Visitor(origin)]
    await registered.post('/auth/local/register', credentialsOf(name))
    await signedIn.get(await signedIn.leaveFor('mine', { subject: name }))
    const [password, provider] = [await registered.userId(), await signedIn.userId()]
    if (password === undefined || provider === undefined) throw new Error(`${name} is not registered`)
    return new LedgerUser(name, { password, provider })
  }

  /** Goes one step at a process. Rejects when that is not acknowledged. */
  async step (origin: string): Promise<void> {
    const open = this.sessions.findLast(({ isOpen }) => isOpen === true)
    const choice = Math.random()
    if (open === undefined || choice < 0.2) await this.#logIn(origin, open)
    else if (choice < 0.4) await this.#comeBack(origin, open)
    else if (choice < 0.8) await this.#write(origin, open)
    else await this.#signOut(origin, open)
  }

  async #logIn (origin: string, before: KnownSession | undefined): Promise<void> {
    const visitor = new Visitor(origin, before?.cookie)
    await this.#replace(before, async () => visitor.post('/auth/local/login', this.#credentials), 200)
    this.#opened(visitor, this.#userIds.password)
  }

  async #comeBack (origin: string, before: KnownSession): Promise<void> {
    const visitor = new Visitor(origin, before.cookie)
    const callback = await visitor.leaveFor('mine', { subject: this.#subject })
    await this.#replace(before, async () => visitor.get(callback), 302)
    this.#opened(visitor, this.#userIds.provider)
  }

  async #signOut (origin: string, open: KnownSession): Promise<void> {
    await this.#replace(open, async () => new Visitor(origin, open.cookie).post('/auth/logout', {}), 204)
  }

  async #write (origin: string, open: KnownSession): Promise<void> {
    const cart = `step ${this.#steps++}`
    open.carts.push(cart)
    acknowledged(await new Visitor(origin, open.cookie).post('/cart', { cart }), 200)
    open.carts = [cart]
  }

  async #replace (session: KnownSession | undefined, ask: () => Promise<{ status: number }>, expected: number): Promise<void> {
    if (session !== undefined) session.isOpen = null
    acknowledged(await ask(), expected)
    if (session !== undefined) session.isOpen = false
  }

  #opened ({ cookie }: Visitor, userId: string): void {
    this.sessions.push({ cookie, userId, isOpen: true, carts: [null] })
  }

  /** Which of these sessions a process sees in another way than the user. */
  async wrongAt (origin: string, sessions = this.sessions): Promise<string[]> {
    const seen = await Promise.all(sessions.map(async ({ cookie, userId, isOpen, carts }) => {
      const visitor = new Visitor(origin, cookie)
      const [{ status }, signedIn, { body }] = [await visitor.get('/private'), await visitor.userId(), await visitor.get('/cart')]
      const seen = [status === 200, signedIn === userId, carts.includes(body.cart ?? null)]
      const ended = [status === 401, signedIn === undefined, body.cart === null]
      // What a killed process has sent to the database may be done between two looks at it.
      const isRight = isOpen === null
        ? seen.every((isSeen, index) => isSeen || ended[index])
        : (isOpen ? seen : ended).every(isSeen => isSeen)
      if (isRight) return []
      return [`${isOpen} for ${userId} with ${carts}: ${status}, ${signedIn}, ${body.cart}`]
    }))
    return seen.flat()
  }
}

/** An answer that acknowledges nothing. */
export class Refusal extends Error {
  readonly status: number

  constructor (status: number) {
    super(`answered ${status}`)
    this.status = status
  }
}

function acknowledged ({ status }: { status: number }, expected: number): void {
  if (status !== expected) throw new Refusal(status)
}

function credentialsOf (name: string): { email: string, password: string } {
  return { email: `${name}@example.com`, password: 'correct horse' }
}
