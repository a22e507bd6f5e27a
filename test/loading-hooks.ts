import type { InitializeHook, LoadHook } from 'node:module'
import type { MessagePort } from 'node:worker_threads'

let port: MessagePort

export const initialize: InitializeHook<MessagePort> = given => { port = given }

/** Tells the URL of each module that is loaded. */
export const load: LoadHook = async (url, context, nextLoad) => {
  port.postMessage(url)
  return nextLoad(url, context)
}
