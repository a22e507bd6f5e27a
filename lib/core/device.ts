/** Browsers by what only they write, the most particular first: most claim to be others too. */
const BROWSERS: ReadonlyArray<readonly [name: string, mark: RegExp]> = [
  ['Edge', /\bEdgA?\//], ['Opera', /\bOPR\//], ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//], ['Chrome', /\b(?:Chrome|CriOS)\//], ['Safari', /\bVersion\/.*\bSafari\//]
]

const SYSTEMS: ReadonlyArray<readonly [name: string, mark: RegExp]> = [
  ['iPhone', /\biPhone\b/], ['iPad', /\biPad\b/], ['Android', /\bAndroid\b/], ['Windows', /\bWindows\b/],
  ['ChromeOS', /\bCrOS\b/], ['macOS', /\bMacintosh\b/], ['Linux', /\bLinux\b/]
]

/**
 * Returns the words by which a user knows a device, such as `Firefox · Windows`; null where the
 * header says neither. It is a guess: clients write what they like.
 */
export function deviceOf (userAgent: string | null): string | null {
  const named = [BROWSERS, SYSTEMS].flatMap(list => list.find(([, mark]) => mark.test(userAgent ?? ''))?.[0] ?? [])
  return named.length === 0 ? null : named.join(' · ')
}
