/** EdDSA, ES256 and RS256; not ML-DSA, which the library adds and Node.js calls experimental. */
export const ALGORITHMS = [-8, -7, -257]

/**
 * Whether a public key of one of these algorithms has the type, the curve and the size of it, which
 * the library does not compare. Whether a point is on P-256 is seen when the key is imported.
 *
 * @see RFC 9053 section 7, RFC 8230 section 4, RFC 8812 section 2
 */
export function isKeyOfAlgorithm (key: ReadonlyMap<number, unknown>): boolean {
  const [type, algorithm, first, second, third] = [1, 3, -1, -2, -3].map(label => key.get(label))
  if (algorithm === -7) return type === 2 && first === 1 && isCoordinate(second) && isCoordinate(third)
  if (algorithm === -8) return type === 1 && first === 6 && isCoordinate(second) && isOnEdwards25519(second)
  const [modulus, exponent] = [numberIn(first), numberIn(second)]
  // OpenSSL verifies no signature by a larger modulus, or by an even one.
  return type === 3 && modulus >= 2n ** 2047n && modulus < 2n ** 16_384n && modulus % 2n === 1n &&
    exponent > 1n && exponent < 2n ** 32n && exponent % 2n === 1n
}

/** Whether bytes encode a point. OpenSSL imports others too, and verifies no signature by them. */
function isOnEdwards25519 (bytes: Uint8Array): boolean {
  const prime = 2n ** 255n - 19n
  // The last bit is the sign of x.
  const y2 = (numberIn(bytes.toReversed()) & (2n ** 255n - 1n)) ** 2n
  // Euler's criterion for x² = (y² - 1) / (d y² + 1), where d = -121665/121666; the product is a
  // square where the quotient is (RFC 8032 section 5.1.3).
  let [base, power] = [(y2 - 1n + prime) * 121666n * (121666n - 121665n * y2 % prime + prime) % prime, 1n]
  for (let exponent = (prime - 1n) / 2n; exponent > 0n; exponent /= 2n) {
    if (exponent % 2n === 1n) power = power * base % prime
    base = base * base % prime
  }
  return power !== prime - 1n
}

function isCoordinate (value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === 32
}

function numberIn (bytes: unknown): bigint {
  return bytes instanceof Uint8Array ? BigInt(`0x0${Buffer.from(bytes).toString('hex')}`) : 0n
}
