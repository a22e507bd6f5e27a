/** How long a call of something outside of this process takes at most, with everything it waits for: a connection, a lock, the server. */
export const PATIENCE_MS = 5000

/** A server that says nothing is a server that is down. */
export class SilenceError extends Error {}

/**
 * What a promise resolves to, unless that takes longer.
 *
 * @param who is asked, for the log
 * @throws SilenceError
 */
export function inTime<T> (milliseconds: number, answer: Promise<T>, who: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => { reject(new SilenceError(`${who} did not answer within ${milliseconds / 1000} seconds; see whether the server is up and can be reached`)) }, milliseconds)
    answer.then(resolve, reject).then(() => { clearTimeout(timer) })
  })
}
