/** A moment that a test waits for, or brings about. */
export interface Deferred {
  promise: Promise<void>
  resolve: () => void
}

export function deferred (): Deferred {
  let resolve = () => {}
  const promise = new Promise<void>(_resolve => { resolve = _resolve })
  return { promise, resolve }
}
