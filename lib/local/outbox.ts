import type { LinkMailKind, NoticeMailKind } from './mail.js'
import type { MailProof, NewEmailProof } from './mail-token.js'

/** The mails that one request causes. They are sent after its answer. */
export interface Outbox {
  /** Sends a link to the address that it proves: the new one for `change-email`. */
  link (kind: 'change-email', proof: NewEmailProof): void
  link (kind: Exclude<LinkMailKind, 'change-email'>, proof: MailProof): void
  /** Sends a mail without a link. A notice about an account is not sent if the option says so. */
  notice (kind: NoticeMailKind, to: string): void
}
