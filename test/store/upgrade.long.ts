import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify'
import type { Sql } from 'postgres'
import t, { type Test } from 'tap'
import { LOCAL_SECRET, SESSION_SECRET, userIdIn } from '../helpers/app.js'
import { Browser } from '../helpers/browser.js'
import { OwnProvider, leaveFor, signInAt } from '../helpers/own-provider.js'
import { clientOf, emptyDatabase } from '../helpers/postgres.js'
import { SlowSessionStore } from '../helpers/slow-session-store.js'
import * as present from '../../lib/index.js'

type Version = Pick<typeof present, 'default' | 'LocalIdentityProvider' | 'SqlAuthStore'>

/** The last commit of version 0.1.0. A copy without the history, such as a shallow clone, lacks it. */
const RELEASE = 'd7b15e5186d65c6e4be4960b2bf63a0f49a5b0dd'
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PASSWORD = 'correct horse'

function hasRelease (): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${RELEASE}^{commit}`], { cwd: ROOT, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Version 0.1.0 as JavaScript, where it finds the packages of this version. */
async function release (t: Test): Promise<Version> {
  const folder = `${ROOT}node_modules/.cache/release-${process.pid}`
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(folder, { recursive: true })
  execFileSync('tar', ['-x', '-C', folder], { input: execFileSync('git', ['archive', RELEASE, 'lib', 'drizzle'], { cwd: ROOT }) })
  buildSync({ entryPoints: [`${folder}/lib/**/*.ts`], outdir: `${folder}/lib`, outbase: `${folder}/lib`, format: 'esm', logLevel: 'error' })
  return import(`${folder}/lib/index.js`)
}

/** A process of one version on the database. */
async function start (t: Test, { default: plugin, ...version }: Version, url: string, store: SlowSessionStore): Promise<FastifyInstance> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(plugin, {
    baseUrl: 'https://app.example',
    providers: [new OwnProvider('dev')],
    local: new version.LocalIdentityProvider({ secret: LOCAL_SECRET }),
    store: new version.SqlAuthStore(url),
    session: { secret: SESSION_SECRET, store },
    rateLimit: false
  })
  // In 0.1.0 the user is a member of the session.
  const isOld = !app.hasRequestDecorator('principal')
  app.get('/me', async ({ principal, session }) => ({ principal: isOld ? Reflect.get(session, 'user') ?? null : principal }))
  app.get('/private', { preHandler: app.auth.requireUser }, async () => 'private')
  app.get('/machines', { preHandler: app.auth.requireBearer }, async () => 'machines')
  await app.ready()
  return app
}

async function registered (app: FastifyInstance, email: string): Promise<Browser & { userId: string }> {
  const browser = new Browser(app)
  const { statusCode } = await browser.post('/auth/local/register', { email, password: PASSWORD })
  if (statusCode !== 201) throw new Error(`register answered ${statusCode}`)
  return Object.assign(browser, { userId: await userIdIn(browser) ?? '' })
}

async function signedIn (app: FastifyInstance, email: string): Promise<LightMyRequestResponse> {
  return new Browser(app).post('/auth/local/login', { email, password: PASSWORD })
}

async function tokenOf (browser: Browser): Promise<string> {
  return (await browser.post('/auth/local/token')).json().token
}

async function isValid (app: FastifyInstance, token: string): Promise<boolean> {
  return (await app.inject({ url: '/machines', headers: { authorization: `Bearer ${token}` } })).statusCode === 200
}

async function isOpen (app: FastifyInstance, { cookies }: Browser): Promise<boolean> {
  return (await new Browser(app, cookies).get('/private')).statusCode === 200
}

/** The statements that the page of upgrades runs twice, from where the migration has them. */
async function repair (client: Sql): Promise<void> {
  const statements = readFileSync(`${ROOT}drizzle/postgres/0001_users.sql`, 'utf8').split('--> statement-breakpoint')
  for (const statement of statements.filter(statement => /^\s*(?:DELETE|UPDATE) /.test(statement))) await client.unsafe(statement)
}

t.setTimeout(300_000)

t.test('processes of 0.1.0 and of this version work on one Postgres, as the page of upgrades says', {
  skip: hasRelease() ? false : 'the history with version 0.1.0 is not here'
}, async t => {
  const url = await emptyDatabase(t)
  const sessions = new SlowSessionStore()
  const version = await release(t)
  const old = await start(t, version, url, sessions)
  const ofOld = await registered(old, 'ada@example.com')
  const tokenOfOld = await tokenOf(ofOld)
  t.ok(await isOpen(old, ofOld))

  const now = await start(t, present, url, sessions)
  const ofNew = await registered(now, 'bob@example.com')
  const tokenOfNew = await tokenOf(ofNew)

  t.test('a session is one of the version that it began on', async t => {
    t.strictSame([await isOpen(old, ofOld), await isOpen(now, ofOld)], [true, false])
    t.strictSame([await isOpen(old, ofNew), await isOpen(now, ofNew)], [false, true])
    t.equal(await userIdIn(new Browser(now, ofOld.cookies)), null)
  })

  t.test('tokens, users, passwords, links and claims are those of both', async t => {
    for (const [app, other, email] of [[old, now, 'carol@example.com'], [now, old, 'dave@example.com']] as const) {
      for (const token of [tokenOfOld, tokenOfNew]) t.ok(await isValid(app, token))
      const { userId } = await registered(app, email)
      await app.auth.grant(userId, { role: 'editor' })
      t.match((await signedIn(other, email)).json(), { userId, claims: { role: 'editor' } })
      const [atOne, atOther] = [new Browser(app), new Browser(other)]
      await signInAt(atOne, 'dev', { subject: email })
      await signInAt(atOther, 'dev', { subject: email })
      t.equal(await userIdIn(atOther), await userIdIn(atOne))
    }
  })

  t.test('0.1.0 does not know what this version records, nor its routes', async t => {
    const mallory = await registered(old, 'mallory@example.com')
    const token = await tokenOf(mallory)
    await now.auth.block(mallory.userId)
    t.equal((await signedIn(now, 'mallory@example.com')).json().code, 'blocked')
    t.equal((await signedIn(old, 'mallory@example.com')).statusCode, 200)

    await now.auth.unblock(mallory.userId)
    const later = new Browser(now)
    await later.post('/auth/local/login', { email: 'mallory@example.com', password: PASSWORD })
    await now.auth.signOutEverywhere(mallory.userId)
    t.strictSame([await isOpen(now, later), await isOpen(old, mallory)], [false, true])
    t.strictSame([await isValid(now, token), await isValid(old, token)], [false, true])

    t.strictSame([(await ofOld.post('/auth/logout')).statusCode, (await ofNew.post('/auth/logout')).statusCode], [404, 204])
  })

  t.test('a sign-in at a provider ends where it was started', async t => {
    for (const [from, to] of [[old, now], [now, old], [now, now]] as const) {
      const leaving = new Browser(from)
      const callback = await leaveFor(leaving, '/auth/dev/login', { subject: 'erin' })
      const back = await new Browser(to, leaving.cookies).get(callback, { accept: 'application/json' })
      t.match(back.body, from === to ? '' : 'invalid_state')
      t.equal(back.statusCode, from === to ? 302 : 400)
    }
  })

  t.test('the statements repair passwords that 0.1.0 left at a former address, also when they run again', async t => {
    const frank = { subject: 'frank', email: 'frank@example.com' }
    await signInAt(new Browser(now), 'dev', frank)
    const user = await now.auth.findUser({ email: frank.email })
    await now.auth.setPassword(user?.userId ?? '', PASSWORD)
    await signInAt(new Browser(old), 'dev', { ...frank, email: 'frank@new.example' })
    t.equal((await signedIn(now, 'frank@new.example')).statusCode, 401)

    const client = clientOf(t, url)
    await repair(client)
    await repair(client)

    t.match((await signedIn(now, 'frank@new.example')).json(), { userId: user?.userId })
    t.equal((await signedIn(now, 'ada@example.com')).statusCode, 200)
  })

  t.test('a process of 0.1.0 starts on the upgraded tables, to go back', async t => {
    const again = await start(t, version, url, sessions)
    t.ok(await isOpen(again, ofOld))
    t.equal((await signedIn(again, 'bob@example.com')).statusCode, 200)
  })
})
