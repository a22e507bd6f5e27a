import { displayName } from '../../claims.js'
import { registrableUris } from './redirect-uris.js'

const MAX_NAME_LENGTH = 100

/** What a client says of itself, in its document or its registration, as far as it is used. */
export interface ClientMetadata {
  /** Its name as it may be shown; null without one. */
  readonly name: string | null
  /** Those that may be registered. */
  readonly redirectUris: readonly string[]
}

/**
 * Reads the metadata of a client. What has another form is left out, and other members are
 * ignored: `application_type` says nothing that the redirect URIs do not.
 *
 * @see RFC 7591 section 2
 */
export function readMetadata (
  { client_name: name, redirect_uris: uris }: Readonly<Record<string, unknown>>, schemes: ReadonlySet<string>
): ClientMetadata {
  return { name: shownName(name), redirectUris: registrableUris(uris, schemes) }
}

/** A name in one line, without what changes the direction of the text around it. */
function shownName (name: unknown): string | null {
  if (typeof name !== 'string') return null
  const line = displayName(name.toWellFormed().replace(/\s+/gu, ' ')).trim()
  return Array.from(line).slice(0, MAX_NAME_LENGTH).join('').trim() || null
}
