import Negotiator from 'negotiator'

/** Texts, and the tag of their language (BCP 47). */
interface Texts {
  readonly language: string
}

/** A language with a region: other parts of a tag may be invalid, or choose another calendar. */
const REGIONAL = /^[a-z]{2,3}-[a-z]{2}$/i

/**
 * Returns the texts in the language that a client prefers, else the first ones; the region that the
 * client names writes dates.
 *
 * @param accepted the header `Accept-Language`
 */
export function preferredTexts<T extends Texts> (languages: readonly [T, ...T[]], accepted: string | undefined): T {
  // Browsers name a few. A server that admits long headers would sort many.
  const header = accepted?.slice(0, 1000)
  for (const preferred of new Negotiator({ headers: { 'accept-language': header } }).languages()) {
    const texts = languages.find(({ language }) => isOfLanguage(preferred, language))
    if (texts !== undefined) return REGIONAL.test(preferred) ? { ...texts, language: preferred } : texts
  }
  return languages[0]
}

/** Whether a tag names a language, or a part of it: `de-AT` is German (RFC 4647 section 3.4). */
export function isOfLanguage (preferred: string, language: string): boolean {
  const [tag, known] = [`${preferred}-`.toLowerCase(), `${language}-`.toLowerCase()]
  return tag.startsWith(known) || known.startsWith(tag)
}
