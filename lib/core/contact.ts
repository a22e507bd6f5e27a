import { isText } from '../claims.js'
import { canonicalEmail } from '../email.js'

/** Whether a value is a URL that readers may open or load. */
export function isHttpsUrl (value: unknown): value is string {
  return isText(value) && URL.canParse(value) && new URL(value).protocol === 'https:'
}

/** Whether a value is where readers ask questions: an e-mail address, or an https: URL. */
export function isContact (value: unknown): value is string {
  return isHttpsUrl(value) || (isText(value) && canonicalEmail(value) !== null)
}

/** Returns the URL of a contact. */
export function contactUrl (contact: string): string {
  return isHttpsUrl(contact) ? contact : `mailto:${contact}`
}
