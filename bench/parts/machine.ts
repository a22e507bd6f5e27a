import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'

/** What the figures of a bench were measured on, with the versions of these packages. */
export function machine (...packages: string[]): string {
  const model = cpus()[0]?.model ?? 'unknown'
  const versions = packages.map(name => `${name} ${versionOf(name)}`)
  return [`${availableParallelism()} cores (${model})`, `Node.js ${process.version.slice(1)}`, ...versions].join(', ')
}

/** Those that only a bench needs are installed beside it. */
function versionOf (name: string): string {
  const [file = ''] = ['../..', '..'].map(folder => fileURLToPath(new URL(`${folder}/node_modules/${name}/package.json`, import.meta.url))).filter(existsSync)
  const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown'
}
