import { checkbox, filledIn, isChecked } from '../../core/schema.js'

export const factorCode = {
  type: 'string', maxLength: 1000, description: 'Six digits of an authenticator app, or a recovery code'
} as const

export const mailCode = {
  type: 'string', maxLength: 100, description: 'The code from the e-mail, if one was sent'
} as const

export const lost = {
  ...checkbox,
  description: 'A checkbox: the user has lost all their passkeys; a code that is mailed stands in for them'
} as const

/** What an authenticator answers: forms send it as a text. */
export const passkeyResponse = {
  anyOf: [{ type: 'object', additionalProperties: true }, { type: 'string', maxLength: 16_384 }],
  description: 'What `PublicKeyCredential.toJSON` returns, or its JSON text'
} as const

/** Returns what the form of a user who has lost their passkeys has: the code says it too. */
export function lostPasskeysIn (fields: { lost?: boolean | string, mailCode?: string }): {
  isLost: boolean, mailCode: string | undefined
} {
  const mailCode = filledIn(fields.mailCode)
  return { isLost: isChecked(fields.lost) || mailCode !== undefined, mailCode }
}
