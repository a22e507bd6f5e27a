/**
 * Puts what the store uses of Drizzle, and its tables, into few files: `node drizzle/bundle.mjs dist/drizzle`.
 *
 * As ES modules drizzle-orm is a hundred files, and for each one Node.js parses its package.json of 179 kB: that took most of the time
 * of the first login, and of the memory (bench/drizzle-orm.md). The files are Drizzle's own, so its license is beside them.
 */
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

export function bundleDrizzle (outdir) {
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'node_modules/drizzle-orm/package.json'), 'utf8'))
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: ['postgres', 'sql', 'sqlite'].map(name => `lib/drizzle/${name}.ts`),
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: 'shared-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'es2023',
    external: ['better-sqlite3'],
    banner: { js: `// Contains parts of drizzle-orm ${version} (${license}, see LICENSE), bundled by esbuild.` }
  })
  copyFileSync(join(ROOT, 'lib/drizzle/LICENSE'), join(ROOT, outdir, 'LICENSE'))
}

if (process.argv[1] === import.meta.filename) bundleDrizzle(process.argv[2])
