import { generate } from 'selfsigned'

/** A key and a certificate of it, for one host, that nobody else has signed. In PEM. */
export async function selfSigned (host: string): Promise<{ key: string, cert: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: host }] }]
  })
  return { key, cert }
}
