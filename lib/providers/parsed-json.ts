/** Parses JSON; returns undefined for any other text. */
export function parsedJson (text: string, reviver?: (name: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver)
  } catch {
    return undefined
  }
}
