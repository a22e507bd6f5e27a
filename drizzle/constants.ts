/** Writes the migrations of each dialect as constants for lib/, which reads no files: an application may be bundled. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'

for (const dialect of ['postgres', 'sqlite']) {
  const folder = fileURLToPath(new URL(dialect, import.meta.url))
  const { entries } = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8'))
  const migrations = readMigrationFiles({ migrationsFolder: folder })
  const module = `// Written by \`npm run migrations\` from drizzle/${dialect}.

/** The migrations in their order. */
export const MIGRATIONS = [
${migrations.map(({ hash, folderMillis, sql }, index) => `  {
    name: '${entries[index].tag}',
    hash: '${hash}',
    folderMillis: ${folderMillis},
    sql: [
${sql.map(statement => linesOf(statement.trim())).join(',\n')}
    ]
  }`).join(',\n')}
]
`
  writeFileSync(new URL(`../lib/store/${dialect}/migrations.ts`, import.meta.url), module)
}

/** The lines of a statement as one string of JavaScript. */
function linesOf (statement: string): string {
  const escaped = statement.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\t', '\\t')
  return escaped.split('\n').map(line => `'${line}`).join("\\n' +\n        ").replace(/^/, '      ') + "'"
}
