import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { Answer, Call } from './store-process.js'

/** A process with a store of its own, to call, one call at a time; the store is opened by the first call. */
export async function startProcess (t: Test, target: string, execArgv: string[] = []) {
  const child = fork(fileURLToPath(new URL('store-process.ts', import.meta.url)), [target], { execArgv: [...process.execArgv, ...execArgv] })
  const exited = once(child, 'exit')
  const message = async (): Promise<unknown> => {
    const [message]: unknown[] = await Promise.race([
      once(child, 'message'),
      exited.then(([code]) => { throw new Error(`the process of the store ended with ${code}`) })
    ])
    return message
  }
  const end = async () => {
    if (child.connected) child.disconnect()
    await exited
  }
  t.teardown(end)
  await message()

  const call = async (call: Call): Promise<Answer> => {
    const answer = message()
    child.send(call)
    return await answer as Answer
  }
  return Object.assign(call, { end })
}
