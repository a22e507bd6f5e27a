/** Whether the time of an answer that may cause a mail tells whether an account has the address. */
import t from 'tap'
import { emptyDatabase } from '../helpers/postgres.js'
import { assertSameTime, timed } from '../helpers/turns.js'
import { type Registration, addressOf, forkSlowMailer } from './mail-timing-process.js'

const ROUNDS = 50

/** Each round asks for addresses that were not asked for before, also those that do not count. */
const USERS = 2 * ROUNDS

const KINDS = {
  'a verified address': 'a',
  'an unknown address': 'b',
  'an unverified address': 'c',
  'the address of a provider alone': 'd',
  'the address of a blocked user': 'e'
} as const

/** Mailboxes that have had their mail: no other is sent within a minute. */
const FULL = { 'a verified mailbox that is full': 'a', 'an unknown mailbox that is full': 'b' } as const

const WAYS: ReadonlyArray<readonly [path: string, registration: Registration]> = [
  ['forgot-password', 'later'], ['register', 'first'], ['mail-login', 'later'], ['mail-login', 'closed']
]

const TARGETS = { memory: async () => null, SQLite: async () => ':memory:', Postgres: emptyDatabase }

for (const [kind, makeTarget] of Object.entries(TARGETS)) {
  for (const [path, registration] of WAYS) {
    t.test(`attack 61: the time of ${path}, registration ${registration}, does not tell whether an account has the address, in ${kind}`, async t => {
      const origin = await forkSlowMailer(t, await makeTarget(t), registration, USERS)

      const ask = async (email: string): Promise<number> => {
        const taken = await timed(async () => {
          const response = await fetch(new URL(`/auth/local/${path}`, origin), {
            method: 'POST',
            headers: { accept: 'application/json', 'content-type': 'application/json' },
            body: JSON.stringify({ email })
          })
          const said = await response.text()
          if (response.status !== 202 || said !== '') t.fail(`the answer was ${response.status} ${said}`)
        })
        // What the application does after this answer must not delay the next one, which is of another kind.
        await (await fetch(new URL('/mails-sent', origin))).text()
        return taken
      }
      await assertSameTime(t, KINDS, ROUNDS, async (letter, round) => ask(addressOf(letter, round)))
      await assertSameTime(t, FULL, ROUNDS, async letter => ask(addressOf(letter, 0)))
    })
  }
}
