/**
 * Prints the bill of materials of the package as CycloneDX: what npm installs with it, in the versions of package-lock.json, and the part of Drizzle
 * that it contains. `npm sbom --omit dev` would leave out each dependency that a development dependency has too, so npm is asked about a
 * project that has the others alone.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Bundled into the package: npm does not see it. */
const CONTAINED = ['drizzle-orm']

const { devDependencies, peerDependencies, peerDependenciesMeta, overrides, scripts, ...project } = readJson('package.json')
const { packages } = readJson('package-lock.json')
const folder = mkdtempSync(join(tmpdir(), 'svc-auth-sbom-'))
try {
  const place = join(folder, project.name)
  mkdirSync(place)
  copyFileSync('package-lock.json', join(place, 'package-lock.json'))
  writeFileSync(join(place, 'package.json'), JSON.stringify(project))
  npm(place, 'install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund')
  const bom = JSON.parse(npm(place, 'sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'library'))
  for (const name of CONTAINED) addContained(bom, name)
  assertComplete(bom)
  console.log(JSON.stringify(bom, null, 2))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function readJson (path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

function npm (cwd, ...args) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: Infinity })
}

/** Adds a package that is compiled into this one, as a part of it. */
function addContained ({ metadata: { component }, components, dependencies }, name) {
  const { version, license } = packages[`node_modules/${name}`]
  const purl = `pkg:npm/${name}@${version}`
  const ref = `${name}@${version}`
  components.push({ 'bom-ref': ref, type: 'library', name, version, scope: 'required', purl, licenses: [{ license: { id: license } }] })
  dependencies.push({ ref, dependsOn: [] })
  dependencies.find(({ ref }) => ref === component['bom-ref']).dependsOn.push(ref)
}

/** Each dependency is there, in the version that the tests run with. */
function assertComplete ({ components }) {
  const versions = new Map(components.map(({ name, version }) => [name, version]))
  for (const name of [...Object.keys(project.dependencies), ...CONTAINED]) {
    assert.equal(versions.get(name), packages[`node_modules/${name}`].version, name)
  }
}
