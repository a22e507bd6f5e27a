import { createHmac } from 'node:crypto'
import { isEqual } from '../../secrets.js'
import { BASE32, bytesOf, randomText } from './codes.js'

/** The kinds of factors that this feature keeps. */
export const APP = 'totp'
export const RECOVERY = 'recovery'

/** Seconds of a time step, which authenticator apps assume, as SHA-1 and six digits. */
const PERIOD = 30
const DIGITS = 6

/** The characters of 20 bytes, the length of SHA-1 (RFC 4226 section 4). */
const SECRET_LENGTH = 32

/** Returns a random secret of 20 bytes in base32, as users type it into an authenticator app. */
export function newTotpSecret (): string {
  return randomText(BASE32, SECRET_LENGTH)
}

/**
 * Returns the URI that an authenticator app reads from a QR code.
 *
 * @param app `issuer`: the application; `account`: the user, such as an e-mail address
 * @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format
 */
export function totpUri ({ issuer, account, secret }: { issuer: string, account: string, secret: string }): string {
  const by = labelOf(issuer)
  // Apps show a plus that stands for a blank.
  const query = new URLSearchParams({ secret, issuer: by }).toString().replaceAll('+', '%20')
  return `otpauth://totp/${encodeURIComponent(by)}:${encodeURIComponent(labelOf(account))}?${query}`
}

/**
 * Draws the QR code of a URI as SVG; null without the optional package uqr, and for a URI that is
 * too long. Margin and background are in the picture, so that cameras read it on dark pages too.
 */
export async function qrSvg (uri: string): Promise<string | null> {
  return import('uqr').then(({ renderSVG }) => renderSVG(uri, { border: 4, pixelSize: 1 })).catch(() => null)
}

/** Returns the time step of a time in milliseconds. */
export function stepAt (now: number): number {
  return Math.floor(now / 1000 / PERIOD)
}

/** Returns the code of a step for a base32 secret (RFC 6238 section 4, RFC 4226 section 5.3). */
export function totpCode (secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigInt64BE(BigInt(step))
  const mac = createHmac('sha1', bytesOf(secret)).update(counter).digest()
  const truncated = mac.readUInt32BE(mac.readUInt8(19) & 0xf) & 0x7fffffff
  return String(truncated % 10 ** DIGITS).padStart(DIGITS, '0')
}

/**
 * Returns the time step that a code is of, the newest where it is of several; null for a wrong
 * code. Takes the same time for each code of six digits.
 *
 * @param tolerance by how many steps the clock of the app may differ, in both directions
 */
export function totpStep (
  secret: string, code: string, { now, tolerance }: { now: number, tolerance: number }
): number | null {
  const newest = stepAt(now) + tolerance
  const steps = Array.from({ length: 2 * tolerance + 1 }, (_, index) => newest - index)
  const matching = steps.filter(step => isEqual(code, totpCode(secret, step)))
  return matching[0] ?? null
}

/** Removes colons: one ends the issuer of the label, even if it is escaped. */
function labelOf (name: string): string {
  return name.replaceAll(':', '').toWellFormed()
}
