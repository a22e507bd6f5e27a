/** How connections prove that a domain is their customer's. */
import { randomBytes } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { type AuditSource, audit } from '../../audit.js'
import { DAY_MS, notLoaded } from '../../base/values.js'
import type { AuthContext } from '../../core/context.js'
import { publicTexts } from '../../core/public-fetch.js'
import { canonicalEmail } from '../../email.js'
import { AuthError, invalidRequest } from '../../errors.js'
import { endSessionsOf } from './enforced.js'
import { forUsersOfDomain } from './for-users-of-domain.js'
import type { ConnectionRows, DomainRow } from './rows.js'

/** A domain that a connection claims. */
export interface ConnectionDomain {
  /** Its A-label in lower case, such as `xn--bcher-kva.example`. */
  domain: string
  /**
   * `claimed`: not proven yet; `proven`; `missing`: proven, and its record was missing at the last
   * check, which it may be for seven days; `lapsed`: proven no longer.
   */
  state: 'claimed' | 'proven' | 'missing' | 'lapsed'
  /** The DNS record that proves it. */
  record: {
    /** The host name of the record. */
    name: string
    /** The type of the record. */
    type: 'TXT'
    /** One of the texts of the record. */
    value: string
  }
  /** Since when it is proven; null while it is not. */
  provenAt: Date | null
  /** When the record was last looked up; null for never. */
  checkedAt: Date | null
}

/** What {@link ConnectionMembers.proveDomain} found. */
export interface DomainProof extends ConnectionDomain {
  /**
   * Why it is not proven now: `no_record`, `unreachable` for name servers that do not answer,
   * `taken` by another connection, whose record is there; null where it is.
   */
  problem: 'no_record' | 'unreachable' | 'taken' | null
}

type DomainContext = Pick<AuthContext, 'accounts' | 'channel' | 'mailer'>

/** How long a domain stays proven whose record is missing. */
const GRACE_MS = 7 * DAY_MS

/** Returns a domain as it is kept; refuses what is none, and what belongs to nobody alone. */
export async function checkedDomain (given: unknown): Promise<string> {
  const domain = typeof given === 'string' ? canonicalEmail(`a@${given}`)?.slice(2) : undefined
  if (domain === undefined) throw invalidRequest('A domain must be a host name, such as "acme.example".')
  const { getDomain } = await import('tldts').catch(notLoaded('tldts', 'The option connections'))
  if (getDomain(domain, { allowPrivateDomains: true }) === null) {
    throw invalidRequest(`${domain} is a public suffix, below which many register domains; claim one of those.`)
  }
  return domain
}

export function newToken (): string {
  return `svc-auth-${randomBytes(24).toString('base64url')}`
}

export function shownDomain (
  { domain, token, provenAt, checkedAt, missingSince, lapsedAt }: DomainRow
): ConnectionDomain {
  const proven = missingSince === null ? 'proven' : 'missing'
  return {
    domain,
    state: provenAt !== null ? proven : lapsedAt !== null ? 'lapsed' : 'claimed',
    record: { name: `_svc-auth-challenge.${domain}`, type: 'TXT', value: token },
    provenAt: provenAt === null ? null : new Date(provenAt),
    checkedAt: checkedAt === null ? null : new Date(checkedAt)
  }
}

/**
 * Looks up the record of a domain, and proves it for a connection. Another connection that had it
 * loses it where its own record is missing. Users who had an address there are told apart from its
 * new owner: their address is disputed until they confirm it.
 *
 * @throws AuthError `not_found` for a domain that the connection does not claim
 */
export async function proveDomain (
  rows: ConnectionRows, auth: DomainContext, { connectionId, domain }: Pick<DomainRow, 'connectionId' | 'domain'>,
  source: AuditSource & { log: FastifyBaseLogger }
): Promise<DomainProof> {
  const now = Date.now()
  const claims = await rows.claimsOf(domain)
  const claim = claims.find(claim => claim.connectionId === connectionId)
  if (claim === undefined) throw new AuthError('not_found')
  const others = claims.filter(claim => claim.connectionId !== connectionId)
  const holder = others.find(({ provenAt }) => provenAt !== null)
  const problem = await (async () => {
    const texts = await textsOf(domain)
    if (texts === null) return 'unreachable'
    if (!texts.includes(claim.token)) {
      await rows.noteMissing(connectionId, domain, now)
      return 'no_record'
    }
    if (holder !== undefined) {
      if (texts.includes(holder.token)) return 'taken'
      await rows.noteMissing(holder.connectionId, domain, now)
      await lapse(rows, auth, holder, now, source)
    }
    const hadOthers = holder !== undefined || others.some(({ lapsedAt }) => lapsedAt !== null)
    if (hadOthers && claim.provenAt === null) await disputeDomain(auth, domain)
    // Another connection may have proven it meanwhile: the index admits one.
    const isProven = await rows.prove(connectionId, domain, now).then(() => true, async (error: unknown) => {
      if ((await rows.claimsOf(domain)).some(({ provenAt }) => provenAt !== null)) return false
      throw error
    })
    if (!isProven) return 'taken'
    if (claim.provenAt === null) {
      audit('domain-proven', { connectionId, domain }, source)
      // Read once it is written: a connection that is enforced meanwhile ends them itself.
      const { enforce = null } = (await rows.find(connectionId))?.row.content ?? {}
      const isEnded = (userId: string): boolean => enforce?.except.includes(userId) === false
      if (enforce !== null) await endSessionsOf(auth, [domain], isEnded, source)
    }
    return null
  })()
  const [present = claim] = (await rows.claimsOf(domain)).filter(claim => claim.connectionId === connectionId)
  return { ...shownDomain(present), problem }
}

/** From then on the mailboxes may be other people's. */
async function disputeDomain ({ accounts }: DomainContext, domain: string): Promise<void> {
  await forUsersOfDomain(accounts, domain, async ({ userId }) => accounts.disputeEmail(userId, domain))
}

/** Ends the proof of a domain whose record is missing, once of all processes. */
async function lapse (
  rows: ConnectionRows, { mailer }: DomainContext, { connectionId, domain }: DomainRow, missingSince: number,
  source: AuditSource & { log: FastifyBaseLogger }
): Promise<void> {
  if (!await rows.lapse(connectionId, domain, missingSince, Date.now())) return
  audit('domain-lapsed', { connectionId, domain }, source)
  const { administrators = [] } = (await rows.find(connectionId))?.row.content ?? {}
  for (const to of administrators) mailer?.sendOfDomain(to, domain, source.log)
}

/** Returns the texts of the record of a domain; null where its name servers do not answer. */
async function textsOf (domain: string): Promise<string[] | null> {
  return publicTexts(`_svc-auth-challenge.${domain}`).catch(() => null)
}

/** Looks the records of proven domains up again, once a day, one at a time. */
export class DomainChecks {
  readonly #rows: ConnectionRows
  #underWay: Promise<void> | null = null

  constructor (rows: ConnectionRows) {
    this.#rows = rows
  }

  /** Starts a check in the background if one is due, and none is under way in this process. */
  start (auth: DomainContext, log: FastifyBaseLogger): void {
    this.#underWay ??= this.#check(auth, log)
      .catch((err: unknown) => { log.warn({ err }, 'the domains of connections could not be checked') })
      .finally(() => { this.#underWay = null })
  }

  async #check (auth: DomainContext, log: FastifyBaseLogger): Promise<void> {
    const now = Date.now()
    const due = await this.#rows.takeDue(now - DAY_MS, now)
    if (due === null) return
    const { connectionId, domain, token } = due
    const texts = await textsOf(domain)
    // Name servers that do not answer say nothing: a domain that is gone is answered for.
    if (texts === null) return
    if (texts.includes(token)) return this.#rows.prove(connectionId, domain, now)
    await this.#rows.noteMissing(connectionId, domain, now)
    await lapse(this.#rows, auth, due, now - GRACE_MS, { log })
  }
}
