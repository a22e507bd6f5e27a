import { isSecureOrLocal } from '../http/secure-url.js'
import { type ChecksOf, mustBe, optional, text } from '../option-checks.js'

/** What the metadata of a protected resource say (RFC 9728 section 2). */
export interface ResourceMetadata {
  /** The issuers of the authorization servers whose tokens the resource accepts. */
  authorization_servers: readonly string[]
  /** The name of the resource, for users. */
  resource_name?: string | undefined
  /** The URL of a page for developers. */
  resource_documentation?: string | undefined
}

export const RESOURCE_METADATA = {
  authorization_servers: mustBe('a list of https: URLs (http: for this machine alone), the issuers of one or more ' +
    'authorization servers', (value): value is string[] =>
    Array.isArray(value) && value.length > 0 && value.every(isSecureOrLocal)),
  resource_name: optional(text),
  resource_documentation: optional(mustBe('an https: URL', isSecureOrLocal))
} satisfies ChecksOf<ResourceMetadata>
