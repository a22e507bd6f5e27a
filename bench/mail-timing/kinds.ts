/** Who has an address that a mail is asked for. */
export const KINDS = {
  a: 'verified address',
  b: 'unknown address',
  c: 'unverified address',
  d: 'address of a provider alone',
  e: 'address of a blocked user'
} as const

export type Kind = keyof typeof KINDS

/** The address of a kind with a number. All have one length. */
export function addressOf (kind: Kind, number: number): string {
  return `${kind}${String(number).padStart(6, '0')}@example.com`
}

/** The number of the address whose mailbox has had its mail. */
export const THROTTLED = 999_999
