import { isIP } from 'node:net'
import { generate } from 'selfsigned'

/** A key and a certificate of it, in PEM. */
export interface Certificate {
  key: string
  cert: string
}

/** A key and a certificate of it, for one host, that nobody else has signed. */
export async function selfSigned (host: string): Promise<Certificate> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: host }] }]
  })
  return { key, cert }
}

/** An authority that nobody knows: its certificate, and what it signs for a host or for a user. */
export async function privateAuthority (name: string): Promise<{ cert: string, issue (name: string): Promise<Certificate> }> {
  const options = { keyType: 'ec', algorithm: 'sha256' } as const
  const { private: key, cert } = await generate([{ name: 'commonName', value: name }], {
    ...options,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true }
    ]
  })
  return {
    cert,
    async issue (name) {
      const altName = isIP(name) === 0 ? { type: 2, value: name } as const : { type: 7, ip: name } as const
      const issued = await generate([{ name: 'commonName', value: name }], {
        ...options,
        ca: { key, cert },
        extensions: [{ name: 'subjectAltName', altNames: [altName] }]
      })
      return { key: issued.private, cert: issued.cert }
    }
  }
}
