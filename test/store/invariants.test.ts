import fc from 'fast-check'
import t from 'tap'
import { Accounts, type AuthStore, type Link } from '../../lib/index.js'
import { holds } from '../helpers/properties.js'
import { STORES } from '../helpers/stores.js'

const IDS = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-00000000000c']
const EMAILS = ['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com']

const userId = fc.constantFrom(...IDS)
const email = fc.constantFrom(...EMAILS)
const verifiedEmail = fc.option(email)
const provider = fc.constantFrom('x', 'y')

/** All operations, with arguments that meet each other's. */
const operation = fc.oneof(
  fc.record({ does: fc.constant('register' as const), userId, email, emailVerified: fc.boolean() }),
  fc.record({ does: fc.constant('arrive' as const), userId, provider, verifiedEmail }),
  fc.record({ does: fc.constant('sign in' as const), userId, provider, verifiedEmail }),
  fc.record({ does: fc.constant('link' as const), userId, provider, verifiedEmail }),
  fc.record({ does: fc.constant('unlink' as const), userId, provider: fc.constantFrom('x', 'y', 'local') }),
  fc.record({ does: fc.constant('set password' as const), userId }),
  fc.record({ does: fc.constantFrom('verify' as const, 'reset' as const, 'release' as const, 'delete' as const), userId }),
  fc.record({ does: fc.constant('change e-mail' as const), userId, to: email })
)

type Operation = typeof operation extends fc.Arbitrary<infer O> ? O : never

async function run (store: AuthStore, move: Operation): Promise<unknown> {
  const accounts = new Accounts(store)
  const { userId } = move
  const user = await store.findUser({ userId })
  const token = { userId, email: user?.email ?? EMAILS[0] ?? '', generation: user?.generation ?? 0 }
  const identityOf = (provider: string, email: string | null) => {
    return { provider, subject: userId, claims: { sub: userId, ...(email !== null && { email }) }, verifiedEmail: email }
  }
  switch (move.does) {
    case 'register': {
      const link = { provider: 'local', subject: move.email, claims: { sub: userId, email: move.email } }
      return accounts.createUser({ userId, email: move.email, emailVerified: move.emailVerified, name: null, claims: {}, link, passwordHash: 'a hash' })
    }
    case 'arrive': {
      const { verifiedEmail, ...link } = identityOf(move.provider, move.verifiedEmail)
      return accounts.createUser({ userId, email: verifiedEmail, emailVerified: verifiedEmail !== null, name: null, claims: {}, link })
    }
    case 'sign in': return accounts.refreshIdentity(identityOf(move.provider, move.verifiedEmail))
    case 'link': return accounts.addLink(userId, identityOf(move.provider, move.verifiedEmail))
    case 'unlink': return accounts.removeLink(userId, move.provider)
    case 'set password': return accounts.setPassword(userId, { passwordHash: 'another hash' })
    case 'verify': return accounts.verifyEmail(token)
    case 'reset': return accounts.resetPassword(token, 'a reset hash')
    case 'release': return accounts.releaseEmail(token)
    case 'delete': return accounts.deleteUser(userId)
    case 'change e-mail': return accounts.changeEmail(token, move.to)
  }
}

/** What is wrong with the accounts of a store. */
async function faultsOf (store: AuthStore): Promise<string[]> {
  const faults: string[] = []
  for (const userId of IDS) {
    const user = await store.findUser({ userId })
    const links: Link[] = await store.links(userId)
    const local = links.find(({ provider }) => provider === 'local')
    if ((user === null) !== (links.length === 0)) faults.push(`${userId} has ${links.length} links`)
    if (local !== undefined && local.subject !== user?.email) faults.push(`${local.subject} is not ${user?.email}`)
    if (local !== undefined && await store.findCredential(local.subject) === null) faults.push(`${local.subject} has no password`)
  }
  return faults
}

for (const [kind, newStore] of Object.entries(STORES)) {
  t.test(`after any operations the subject of a link at local is the e-mail of its user, on ${kind}`, async t => {
    await holds(t, fc.asyncProperty(fc.array(operation, { maxLength: 15 }), async moves => {
      const store = await newStore(t)
      for (const move of moves) {
        await run(store, move).catch((error: unknown) => {
          if (!(error instanceof Error && 'code' in error) || error.code === 'unavailable') throw error
        })
        const faults = await faultsOf(store)
        if (faults.length > 0) throw new Error(faults.join('; '))
      }
    }), kind === 'memory' ? 3000 : 300)
  })
}
