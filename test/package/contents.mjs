import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'

/** What is written for the package, besides what is compiled and generated. */
const PAGES = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']

const DOCUMENT = 'dist/openapi.json'

/**
 * The paths of all files that the package of a repository is to hold: a module and its types for each source but tests, what the build
 * makes of Drizzle, the OpenAPI document, and the migrations. The snapshots that drizzle-kit keeps beside them are of use here only.
 */
export async function expectedContents (root) {
  const sources = (await filesIn(root, 'lib')).filter(source => /(?<!\.(?:test|long))\.ts$/.test(source))
    .map(source => source.replace(/^lib\//, 'dist/').replace(/\.ts$/, ''))
  const drizzle = (await filesIn(root, 'dist/drizzle')).filter(path => /\/(?:shared-\w+\.js|LICENSE)$/.test(path))
  const migrations = await Promise.all(['drizzle/postgres', 'drizzle/sqlite'].map(folder => filesIn(root, folder)))
  const generated = migrations.flat().filter(path => path.endsWith('.sql') || path.endsWith('_journal.json'))
  return [...PAGES, DOCUMENT, ...sources.flatMap(name => [`${name}.js`, `${name}.d.ts`]), ...drizzle, ...generated]
}

async function filesIn (root, folder) {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => relative(root, join(entry.parentPath, entry.name)))
}
