/** Removes a byte order mark, as `fetch` does. */
const UTF_8 = new TextDecoder()

/** Reads a body by iteration, as any `fetch` supports it; null once it is longer than the limit. */
export async function limitedBody (body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > maxBytes) return null
    chunks.push(chunk)
  }
  return UTF_8.decode(Buffer.concat(chunks))
}
