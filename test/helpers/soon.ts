import { setTimeout as wait } from 'node:timers/promises'

/** Asks for what no event tells. */
export async function isSoon (holds: () => Promise<boolean>): Promise<boolean> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    if (await holds()) return true
    await wait(10)
  }
  return false
}
