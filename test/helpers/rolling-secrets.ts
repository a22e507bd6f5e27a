import type { Test } from 'tap'
import { Visitor } from './visitor.js'

export const OLD = 'the session secret of last year, 32+'
export const NEW = 'the session secret of this year, 32+'

const PASSWORD = 'correct horse'

/** A process of an application with passwords. */
interface AppProcess {
  readonly origin: string
  end (): Promise<unknown>
}

/**
 * Changes the secret of two processes in two rounds of restarts. Before and after each restart a new user registers at each process; then
 * every user is signed in at every process, with the cookie that they had.
 *
 * @returns the processes, which sign with the new secret and still take the old one, and a login of the first user
 */
export async function rollSecret<P extends AppProcess> (t: Test, start: (...secrets: string[]) => Promise<P>) {
  const processes = [await start(OLD), await start(OLD)]
  const cookies: string[] = []

  const check = async (what: string): Promise<void> => {
    for (const { origin } of processes) {
      const visitor = new Visitor(origin)
      await visitor.post('/auth/local/register', { email: `ada+${cookies.length}@example.com`, password: PASSWORD })
      cookies.push(visitor.cookie)
    }
    for (const { origin } of processes) {
      for (const [index, cookie] of cookies.entries()) {
        const visitor = new Visitor(origin, cookie)
        const { status } = await visitor.get('/private')
        t.strictSame([status, visitor.cookie], [200, cookie], `${what}: user ${index}`)
      }
    }
  }

  await check('before')
  for (const [round, secrets] of [['first', [OLD, NEW]], ['second', [NEW, OLD]]] as const) {
    for (const index of processes.keys()) {
      await processes[index]?.end()
      processes[index] = await start(...secrets)
      await check(`${round} round, process ${index}`)
    }
  }
  return { processes, login: { email: 'ada+0@example.com', password: PASSWORD } }
}
