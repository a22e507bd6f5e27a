/**
 * The longest time that a call outside this process may take, waits for a connection or a lock
 * included.
 */
export const TIMEOUT_MS = 5000

export class TimeoutError extends Error {}

/**
 * Waits for an answer for a limited time.
 *
 * @param server the name of the server, for the log
 * @throws TimeoutError when the time is over
 */
export function withTimeout<T> (milliseconds: number, answer: Promise<T>, server: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new TimeoutError(`${server} did not answer within ${Math.round(milliseconds / 100) / 10} seconds; ` +
        'see whether the server is up and can be reached'))
    }, milliseconds)
    answer.then(resolve, reject).then(() => { clearTimeout(timer) })
  })
}
