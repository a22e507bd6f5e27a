import { digestOf } from '../base/digest.js'

/**
 * Names the user to whom a page was shown, as its forms send it in `shown_to`. Otherwise the form
 * of a page that is still open would act for the user who signs in next on this machine.
 */
export function shownTo (userId: string): string {
  return digestOf(userId).slice(0, 16)
}
