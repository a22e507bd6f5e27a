import { fork } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import type { Test } from 'tap'
import authPlugin, { type Mail, type SendMail, SqlAuthStore } from '../../lib/index.js'
import type { RegistrationPolicy } from '../../lib/features/local/local-identity-provider.js'
import { SecondFactor } from '../../lib/second-factor.js'
import { LOCAL_SECRET, SESSION_SECRET, localProvider } from '../helpers/app.js'
import { OwnProvider } from '../helpers/own-provider.js'

/** What a process of the application tells its parent: where it listens, then each mail. */
type Message = { origin: string } | { mail: Mail }

type Verify = NonNullable<RegistrationPolicy['verify']>

/**
 * Starts a process of an application on a database and returns its origin. The process sends its
 * mails through the parent, and ends with the test.
 *
 * @param options `hasFactors`: whether its users may set up second factors; default false
 */
export async function forkMailProcess (
  t: Test,
  { target, sendMail, verify = 'later', hasFactors = false }:
  { target: string, sendMail: SendMail, verify?: Verify, hasFactors?: boolean }
): Promise<string> {
  const child = fork(fileURLToPath(import.meta.url), [target, verify, String(hasFactors)], { execArgv: process.execArgv })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    if (child.connected) child.disconnect()
    await exited
  })
  return new Promise<string>((resolve, reject) => {
    child.once('exit', code => { reject(new Error(`the application ended with ${code}`)) })
    child.on('message', (message: Message) => {
      if ('origin' in message) resolve(message.origin)
      else sendMail(message.mail)
    })
  })
}

// As a program: an application that ends when its parent lets it go.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , target, verify, hasFactors] = process.argv
  const tell = (message: Message): void => { process.send?.(message) }
  const app = Fastify()
  await app.register(authPlugin, {
    // Not https, because the session cookie travels over http here.
    baseUrl: 'http://app.example',
    local: localProvider({
      sendMail: mail => { tell({ mail }) },
      mails: { limits: false },
      registration: { verify: verify as Verify }
    }),
    providers: [new OwnProvider('mine')],
    store: new SqlAuthStore(target),
    session: { secret: SESSION_SECRET },
    rateLimit: false,
    ...(hasFactors === 'true' && { dataSecret: LOCAL_SECRET, secondFactor: new SecondFactor({ issuer: 'Shop' }) })
  })
  app.get('/me', async request => ({ principal: request.principal }))
  let verifications = 0
  subscribe('fastify-svc-auth.verification', () => { verifications++ })
  app.get('/verifications', async () => ({ verifications }))
  process.once('disconnect', () => app.close())
  tell({ origin: await app.listen({ host: '127.0.0.1', port: 0 }) })
}
