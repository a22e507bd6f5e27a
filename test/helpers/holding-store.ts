import type { AuthStore } from '../../lib/index.js'
import { deferred } from './deferred.js'

/** Makes a store hold the answer about one credential, or about a sign-in at a provider, until the test lets it go. */
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
  const [findCredential, change] = [store.findCredential.bind(store), store.change.bind(store)]
  store.findCredential = async email => hold(findCredential(email))
  store.change = async (find, wanted, rule) => {
    const answer = change(find, wanted, rule)
    return 'userId' in find ? answer : hold(answer)
  }
  return held
}
