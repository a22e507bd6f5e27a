/** An application that asks for access to a user's data (RFC 6749 section 1.1); always public. */
export interface OAuthClient {
  /** The `client_id`. */
  readonly id: string
  /** Its name as it may be shown; null where its host stands for it. */
  readonly name: string | null
  /** Those that may be registered: see `isRegistrable`. */
  readonly redirectUris: readonly string[]
  /** Whether the owner of this application says that it is theirs. */
  readonly firstParty: boolean
  /** Who says what it is: the options, its document, or itself by registration. */
  readonly kind: 'configured' | 'document' | 'registered'
}
