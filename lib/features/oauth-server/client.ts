/** A client, wherever it is known from. All are public: they have no secret. */
export interface OAuthClient {
  readonly id: string
  /** Null where it says none. */
  readonly name: string | null
  readonly redirectUris: readonly string[]
  /** Whether it belongs to the owner of the application. */
  readonly firstParty: boolean
  readonly kind: 'configured' | 'document' | 'registered'
}
