/**
 * E-mails ready to send: what each kind of mail says, in several languages.
 *
 * @module fastify-svc-auth/mails
 */
export { type MailLogo, type MailText, type MailTextsOptions, mailTexts } from './features/mail-texts/mail-texts.js'
export type { LinkMailWords, MailLanguage, MailWords } from './features/mail-texts/mail-language.js'
export { ar } from './features/mail-texts/languages/ar.js'
export { de } from './features/mail-texts/languages/de.js'
export { en } from './features/mail-texts/languages/en.js'
export { es } from './features/mail-texts/languages/es.js'
export { fr } from './features/mail-texts/languages/fr.js'
export { ja } from './features/mail-texts/languages/ja.js'
