/** What the modes of TLS in a URL mean, as libpq has it: run on a proxy that speaks TLS, and on a server that does. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { SqlAuthStore } from '../../../lib/index.js'
import { type Certificate, privateAuthority } from '../../helpers/certificate.js'

/** Makes a server with a certificate, and returns the URL of an empty database at 127.0.0.1. */
export type MakeServer = (t: Test, certificate: Certificate) => Promise<string>

const UNTRUSTED = /; name the file of the authority's certificate in the URL: sslmode=verify-full&sslrootcert=ca\.pem$/
const OTHER_HOST = /; connect to a host that the certificate is for/

/** The parameters; what becomes of connections to a host that the certificate is for; to another one. A is the file of its authority, B another. */
const MODES: Array<[parameters: string, right: RegExp | null, other: RegExp | null]> = [
  ['sslmode=allow', null, null],
  ['sslmode=prefer', null, null],
  ['sslmode=require', null, null],
  ['ssl=require', null, null],
  ['sslmode=no-verify', null, null],
  ['sslmode=require&channel_binding=prefer', null, null],
  ['sslmode=require&sslaccept=accept_invalid_certs', null, null],
  ['sslmode=require&sslrootcert=A', null, null],
  ['sslmode=require&sslrootcert=B', UNTRUSTED, UNTRUSTED],
  ['sslmode=verify-ca&sslrootcert=A', null, null],
  ['sslmode=verify-ca&sslrootcert=B', UNTRUSTED, UNTRUSTED],
  ['sslmode=verify-ca', UNTRUSTED, UNTRUSTED],
  ['sslmode=verify-full&sslrootcert=A', null, OTHER_HOST],
  ['sslmode=verify-full&sslrootcert=B', UNTRUSTED, UNTRUSTED],
  ['sslmode=verify-full', UNTRUSTED, UNTRUSTED],
  ['sslmode=require&channel_binding=require', UNTRUSTED, UNTRUSTED],
  ['channel_binding=require', UNTRUSTED, UNTRUSTED],
  ['sslmode=require&channel_binding=require&sslrootcert=A', null, OTHER_HOST],
  ['sslrootcert=system', UNTRUSTED, UNTRUSTED],
  ['sslmode=verify-ca&sslrootcert=system', UNTRUSTED, UNTRUSTED],
  ['ssl=true', UNTRUSTED, UNTRUSTED],
  ['ssl=true&sslrootcert=A', null, OTHER_HOST],
  ['sslmode=require&sslaccept=strict', UNTRUSTED, UNTRUSTED]
]

export function testTlsModes (name: string, makeServer: MakeServer): void {
  t.test(name, async t => {
    const [authority, another] = [await privateAuthority('A'), await privateAuthority('B')]
    const folder = t.testdir()
    const file = (name: string, pem: string): string => {
      writeFileSync(join(folder, name), pem)
      return encodeURIComponent(join(folder, name))
    }
    const [fileA, fileB] = [file('a.pem', authority.cert), file('b.pem', another.cert)]

    for (const [right, other] of [['localhost', '127.0.0.1'], ['127.0.0.1', 'localhost']] as const) {
      t.test(`a certificate for ${right}`, async t => {
        const url = await makeServer(t, await authority.issue(right))
        for (const [parameters, ofRight, ofOther] of MODES) {
          for (const [host, refusal] of [[right, ofRight], [other, ofOther]] as const) {
            const query = parameters.replace('=A', `=${fileA}`).replace('=B', `=${fileB}`)
            const store = new SqlAuthStore(`${url.replace('127.0.0.1', host)}?${query}`)
            const found = store.findUser({ email: 'ada@example.com' })
            if (refusal === null) t.equal(await found, null, `${parameters} to ${host}`)
            else await t.rejects(found, { code: 'unavailable', cause: { message: refusal } }, `${parameters} to ${host}`)
            await store.close()
          }
        }
      })
    }
  })
}
