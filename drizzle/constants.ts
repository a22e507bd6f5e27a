/** Writes the migrations of each dialect as constants for lib/, which reads no files: an application may be bundled. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { type Migration, PARTS, type TablePart } from '../lib/engines/sql-tables.js'

/** Those that the first query makes, and those of features; the others are made with the sessions. */
const TABLES_OF: Partial<Record<TablePart, readonly string[]>> = {
  users: ['svc_auth_users', 'svc_auth_credentials', 'svc_auth_provider_links'],
  grants: ['svc_auth_grants', 'svc_auth_clients'],
  keys: ['svc_auth_keys'],
  connections: ['svc_auth_connections', 'svc_auth_domains']
}

for (const dialect of ['postgres', 'sqlite']) {
  const module = `// Written by \`npm run migrations\` from drizzle/${dialect}.
import type { Migrations } from '../sql-tables.js'

/** The migrations of each part in their order. */
export const ${dialect.toUpperCase()}_MIGRATIONS: Migrations = {
${PARTS.map(part => `  ${part}: [${migrationsIn(dialect, part).map(({ name, sql }) => `{
    name: '${name}',
    sql: [
${sql.map(statement => `      ${literal(statement)}`).join(',\n')}
    ]
  }`).join(', ')}]`).join(',\n')}
}
`
  writeFileSync(new URL(`../lib/engines/${dialect}/migrations.ts`, import.meta.url), module)
}

/** The statements of a dialect's migrations for one part of the tables. */
function migrationsIn (dialect: string, part: TablePart): Migration[] {
  const migrationsFolder = fileURLToPath(new URL(dialect, import.meta.url))
  const { entries } = JSON.parse(readFileSync(`${migrationsFolder}/meta/_journal.json`, 'utf8'))
  return readMigrationFiles({ migrationsFolder }).flatMap(({ sql }, index) => {
    const ofPart = sql.map(statement => statement.trim()).filter(statement => partOf(statement) === part)
    return ofPart.length === 0 ? [] : [{ name: `${entries[index].tag}-${part}`, sql: ofPart }]
  })
}

function partOf (statement: string): TablePart {
  const [, table = ''] = /^(?:CREATE|ALTER) .*?(?:TABLE| ON) ["`](\w+)/.exec(statement) ?? []
  if (table === '') throw new Error(`of which table is this? ${statement}`)
  return PARTS.find(part => TABLES_OF[part]?.includes(table)) ?? 'sessions'
}

/** A statement as a string of JavaScript on one line: to be read, it is in drizzle/. */
function literal (statement: string): string {
  const escaped = statement.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\t', '\\t').replaceAll('\n', '\\n')
  return `'${escaped}'`
}
