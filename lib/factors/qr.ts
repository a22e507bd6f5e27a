/**
 * Draws the QR code of a URI. Its margin and background are in the picture, so that cameras read it
 * on dark pages too.
 *
 * @returns an SVG element; null where the optional package uqr is not installed
 */
export async function qrSvg (uri: string): Promise<string | null> {
  const uqr = await import('uqr').catch(() => null)
  return uqr?.renderSVG(uri, { border: 4, pixelSize: 1 }) ?? null
}
