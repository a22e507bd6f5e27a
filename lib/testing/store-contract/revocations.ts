import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { withTimeout } from '../../base/concurrency.js'
import { type RevocationListener, capabilitiesOf } from '../../session/store.js'
import { identity, localUser } from './fixtures.js'
import type { Rule } from './rule.js'

const HEARD_MS = 60_000

/** The optional member `revocations`. */
export function revocationsContract (rule: Rule): void {
  rule('what ends all sessions of a user is told once to another store, and never to its own', async open => {
    const { store, stores } = await open()
    const { revocations } = capabilitiesOf(stores.store)
    const { revocations: revocationsOfTwin } = capabilitiesOf(stores.twin)
    if (revocations === null || revocationsOfTwin === null || stores.store === stores.twin) return
    const [own, other] = [new Heard(), new Heard()]
    await Promise.all([revocations.follow(own), revocationsOfTwin.follow(other)])
    const user = localUser(`${randomUUID()}@example.com`)
    const { userId, email } = user
    const link = (generation: number) => ({ userId, email: String(email), generation })
    await store.createUser(user)
    await store.addLink(userId, identity('other', userId))

    await store.changeUser(userId, { name: 'Ada' })
    await store.changeUser(userId, { endSessions: true })
    await store.setPassword(userId, { passwordHash: 'another hash' })
    await store.removeLink(userId, 'other')
    await store.releaseEmail(link(0))
    await store.resetPassword(link(3), 'a third hash')
    await store.changeEmail(link(4), `new-${String(email)}`)
    await revocations.record(userId)

    const [last, lastOfTwin] = [randomUUID(), randomUUID()]
    await Promise.all([revocations.record(last), other.hears(last)])
    await Promise.all([revocationsOfTwin.record(lastOfTwin), own.hears(lastOfTwin)])
    assert.equal(other.times(userId), 6)
    assert.equal(own.times(userId), 0)
  })
}

function pass (): void {}

/** The revocations that were told. */
class Heard implements RevocationListener {
  readonly log = { info: pass, warn: pass }
  readonly #userIds: string[] = []
  readonly #heard = new Map<string, PromiseWithResolvers<void>>()

  revoked (userId: string): void {
    this.#userIds.push(userId)
    this.#about(userId).resolve()
  }

  /** Waits for a store that looks every ten seconds, whose timer keeps no process running. */
  async hears (userId: string): Promise<void> {
    return withTimeout(HEARD_MS, this.#about(userId).promise, 'the other store')
  }

  times (userId: string): number {
    return this.#userIds.filter(id => id === userId).length
  }

  #about (userId: string): PromiseWithResolvers<void> {
    const heard = this.#heard.get(userId) ?? Promise.withResolvers()
    this.#heard.set(userId, heard)
    return heard
  }
}
