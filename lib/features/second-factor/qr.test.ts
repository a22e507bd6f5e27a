import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { encode } from 'uqr'
import { qrSvg, totpUri } from './totp.js'

const ROOT = join(import.meta.dirname, '../../..')
const URI = totpUri({ issuer: 'Shop', account: '<ada>@example.com', secret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' })

t.test('the QR code of a URI is an SVG with a white margin of four modules, and nothing of the URI as text', async t => {
  const svg = String(await qrSvg(URI))

  const { data, size } = encode(URI, { border: 4 })
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => isDark ? [`${x},${y}`] : []))
  t.strictSame(Array.from(svg.matchAll(/M(\d+,\d+)h1v1h-1z/g), ([, at]) => at), dark)
  t.match(svg, new RegExp(`^<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}"><rect fill="white" width="${size}" height="${size}"/>`))
  t.ok(dark.every(at => at.split(',').every(place => Number(place) >= 4 && Number(place) < size - 4)))
  t.notMatch(svg, /ada|style|script/)
})

t.test('the longest e-mail and a long name fit into the QR code', async t => {
  const account = `${'a'.repeat(64)}@${'b'.repeat(185)}.com`
  t.match(await qrSvg(totpUri({ issuer: '漢'.repeat(60), account, secret: 'A'.repeat(32) })), /^<svg /)
})

t.test('a URI that is too long for a QR code has none', async t => {
  t.equal(await qrSvg(totpUri({ issuer: 'Shop', account: '漢'.repeat(400), secret: 'A'.repeat(32) })), null)
})

t.test('without the package uqr there is no QR code', async t => {
  const hidden = `data:text/javascript,${encodeURIComponent(`
    export async function resolve (specifier, context, next) {
      if (specifier === 'uqr') throw Object.assign(new Error("Cannot find package 'uqr'"), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(specifier, context)
    }`)}`
  const hide = `data:text/javascript,${encodeURIComponent(`import { register } from 'node:module'; register(${JSON.stringify(hidden)})`)}`
  const program = 'console.log(await (await import("./lib/features/second-factor/totp.ts")).qrSvg("otpauth://totp/Shop:ada"))'

  const flags = ['--import', './test/typescript.mjs', '--import', hide, '--input-type=module']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--eval', program], { cwd: ROOT })
  t.equal(stdout, 'null\n')
})
