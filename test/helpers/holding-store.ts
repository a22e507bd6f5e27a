import type { AuthStore } from '../../lib/index.js'
import { deferred } from './deferred.js'

/** Makes a store hold the answer about one credential until the test lets it go. */
export function holdAnswers (store: AuthStore) {
  const held = { read: deferred(), goOn: deferred(), holds: false }
  const hold = async <T>(answer: Promise<T>): Promise<T> => {
    const known = await answer
    if (!held.holds) return known
    held.holds = false
    held.read.resolve()
    await held.goOn.promise
    return known
  }
  const [findCredential, refreshIdentity] = [store.findCredential.bind(store), store.refreshIdentity.bind(store)]
  store.findCredential = async email => hold(findCredential(email))
  store.refreshIdentity = async (...identity) => hold(refreshIdentity(...identity))
  return held
}
